//! The last line of a terminal, which each step of long work takes the place of: the report at the end tells all of
//! them again, and better.

use std::io::IsTerminal as _;

/// Longest such line, in characters: one that the terminal breaks could not be taken back.
const COLUMNS: usize = 79;
/// Back to the start of the line, and nothing behind that.
const CLEAR: &str = "\r\x1b[K";

/// Whether steps pass by, and whether one stands there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Live {
    passes: bool,
    stands: bool,
}

impl Live {
    /// Steps pass by where both streams go to a terminal that can take a line back. Elsewhere each is a line that stays:
    /// nobody sees the report there, or a file keeps it.
    pub(super) fn of_this_process() -> Self {
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        Self::new(std::io::stdout().is_terminal() && std::io::stderr().is_terminal() && !is_dumb)
    }

    fn new(passes: bool) -> Self {
        Self { passes, stands: false }
    }

    /// What to write to stderr for a step.
    pub(super) fn step(&mut self, text: &str) -> String {
        if !self.passes {
            return format!("{text}\n");
        }
        self.stands = true;
        let short: String = text.chars().take(COLUMNS).map(|c| if c.is_control() { ' ' } else { c }).collect();
        format!("{CLEAR}{short}")
    }

    /// What to write to stderr before anything else is written, to either stream.
    pub(super) fn taken_back(&mut self) -> &'static str {
        if std::mem::take(&mut self.stands) { CLEAR } else { "" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a terminal shows of `written`, line by line.
    fn shown(written: &str) -> Vec<String> {
        let last = |line: &str| line.rsplit(CLEAR).next().unwrap().to_owned();
        written.split_terminator('\n').map(last).collect()
    }

    #[test]
    fn step_on_a_terminal_gives_way_to_the_next_and_to_the_report() {
        let mut live = Live::new(true);
        let mut written = String::new();
        written.push_str(live.taken_back());
        written.push_str("Published declaration 1\n");
        written.push_str(&live.step("  changed    m.one"));
        written.push_str(&live.step("  changed    m.two"));
        assert_eq!(shown(&written), ["Published declaration 1", "  changed    m.two"]);
        written.push_str(live.taken_back());
        written.push_str("2 changed\n  changed    m.one\n  changed    m.two\n");
        assert_eq!(live.taken_back(), "");
        let all = ["Published declaration 1", "2 changed", "  changed    m.one", "  changed    m.two"];
        assert_eq!(shown(&written), all, "each once");
        assert!(live.step(&"x".repeat(500)).len() < 100);
    }

    #[test]
    fn step_elsewhere_is_a_line() {
        let mut live = Live::new(false);
        assert_eq!((live.step("  changed    m.one").as_str(), live.taken_back()), ("  changed    m.one\n", ""));
    }
}

//! Where things are said: data on stdout, talk on stderr, every line with the known secrets hidden.

use std::fmt::Display;
use std::io::{ErrorKind, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anstyle::{AnsiColor, Style};
use replicator_protocol::mask::Masker;
use replicator_protocol::secret::SecretBytes;
use rustix::event::{PollFd, PollFlags, Timespec};
use serde::Serialize;

use super::args::{Global, Output};
use super::failure::Failure;
use super::live::Live;

const RED: Style = AnsiColor::Red.on_default().bold();
const YELLOW: Style = AnsiColor::Yellow.on_default().bold();

/// Shortest value that is masked, in characters.
const SHORTEST: usize = 8;

/// The two streams of a command.
#[derive(Clone)]
pub struct Ui {
    output: Output,
    quiet: bool,
    streams: Arc<Mutex<Streams>>,
}

/// What holds for both streams: one line at a time goes to either.
struct Streams {
    masker: Masker,
    live: Live,
}

impl Ui {
    /// Streams as the flags want them.
    pub fn new(global: &Global) -> Self {
        let streams = Streams { masker: Masker::new(SHORTEST), live: Live::of_this_process() };
        Self { output: global.output, quiet: global.quiet, streams: Arc::new(Mutex::new(streams)) }
    }

    /// How data is printed.
    pub fn output(&self) -> Output {
        self.output
    }

    /// Whether data is for a program.
    pub fn is_json(&self) -> bool {
        self.output == Output::Json
    }

    /// Hides `value` in every line from now on.
    pub fn hide(&self, value: &SecretBytes) {
        self.lock().masker.hide(value);
    }

    /// One line, or several, of data for people.
    ///
    /// # Errors
    ///
    /// The [`Failure`] to show where stdout takes no more, as on a full disk; a reader that went away is none.
    pub fn data(&self, text: impl Display) -> Result<(), Failure> {
        self.print(&text.to_string())
    }

    /// One JSON document: pretty where it is the whole answer.
    ///
    /// # Errors
    ///
    /// As [`Ui::data`].
    pub fn json(&self, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(value).map_err(|error| Failure::error(&error))?;
        self.print(&text)
    }

    /// One JSON document on a line of its own: an item of a stream.
    ///
    /// # Errors
    ///
    /// As [`Ui::data`].
    pub fn json_line(&self, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string(value).map_err(|error| Failure::error(&error))?;
        self.print(&text)
    }

    /// Whether somebody still reads stdout: a stream without end stops where its reader went away.
    pub fn is_read(&self) -> bool {
        let stdout = std::io::stdout();
        let mut seen = [PollFd::new(&stdout, PollFlags::empty())];
        // Asked for nothing, it tells of errors alone; one that cannot be asked is taken for a reader.
        let told = rustix::event::poll(&mut seen, Some(&Timespec::default()));
        told.is_err() || !seen[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
    }

    fn print(&self, text: &str) -> Result<(), Failure> {
        let mut streams = self.lock();
        streams.take_back();
        let text = streams.masker.mask(text);
        let mut stdout = anstream::stdout();
        match writeln!(stdout, "{text}").and_then(|()| stdout.flush()) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            Err(source) => Err(Failure::message("cannot write to stdout").caused_by(source)),
        }
    }

    /// Progress; silent under `--quiet`.
    pub fn say(&self, text: impl Display) {
        if !self.quiet {
            self.talk(&text.to_string());
        }
    }

    /// Something to know although the command goes on.
    pub fn warn(&self, text: impl Display) {
        self.talk(&format!("{YELLOW}warning{YELLOW:#}: {text}"));
    }

    /// What went wrong, once.
    pub fn failure(&self, failure: &Failure) {
        self.talk(&format!("{RED}{}{RED:#}: {}", failure.verdict(), failure.rest()));
    }

    /// One step of long work; silent under `--quiet`. What is said next takes its place where both streams go to a
    /// terminal, so the report on all steps does not tell each a second time there.
    pub fn step(&self, text: impl Display) {
        if !self.quiet {
            let mut streams = self.lock();
            let text = streams.masker.mask(&text.to_string());
            written_as_it_is(&streams.live.step(&text));
        }
    }

    /// A line on stderr as it stands, also under `--quiet`.
    pub fn talk(&self, text: &str) {
        // Where stderr is gone there is nobody to tell.
        let _ = self.write(&format!("{text}\n"));
    }

    /// Text on stderr, whose lines are whole.
    pub(super) fn write(&self, text: &str) -> std::io::Result<()> {
        let mut streams = self.lock();
        streams.take_back();
        anstream::stderr().write_all(streams.masker.mask(text).as_bytes())
    }

    fn lock(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Streams {
    /// Takes back a step that stands at the end of the terminal.
    fn take_back(&mut self) {
        written_as_it_is(self.live.taken_back());
    }
}

/// Writes to stderr what moves on a terminal too: without colour it moves all the same.
fn written_as_it_is(text: &str) {
    if !text.is_empty() {
        // Where stderr is gone there is nobody to tell.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}

//! What is wrong with a file: where, why, and what to write instead; all of it at once.

use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;

use super::credential;

/// Longest part of a line that is shown, in characters: a terminal's width, less the margin.
const SHOWN_MAX: usize = 140;

/// A place in a file; lines and columns start at 1 and count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
    /// Characters from there on, at least one.
    pub width: usize,
}

/// Whether a finding refuses the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It does.
    Error,
    /// It does not, unless asked to.
    Warning,
}

/// What kind of finding it is; the spelling is stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// Not YAML, or YAML that is not taken here.
    Syntax,
    /// Larger, deeper or more expanded than is read.
    Limit,
    /// A key stands twice.
    DuplicateKey,
    /// A key that is not known there.
    UnknownKey,
    /// A key or value of the format that this version does not offer.
    NotOffered,
    /// A key that has another name today.
    RenamedKey,
    /// A key that must be there.
    MissingKey,
    /// Text where a list is expected, and the like.
    WrongType,
    /// Text that YAML reads as something else.
    NeedsQuotes,
    /// Text that is not what belongs there.
    InvalidValue,
    /// A secret in clear.
    Credential,
    /// Two things that exclude each other, or one that needs another.
    Conflict,
    /// A file it names cannot be read.
    Unreadable,
    /// A key that has no effect.
    Unused,
    /// Something to know before it runs.
    Note,
}

impl Code {
    /// Whether it is a matter of the key alone: what stands behind that one nobody reads, and it may be a secret.
    fn is_of_key(self) -> bool {
        matches!(self, Self::UnknownKey | Self::NotOffered | Self::RenamedKey | Self::DuplicateKey | Self::Unused)
    }
}

/// One thing that is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Where.
    pub place: Place,
    /// Whether it refuses the file.
    pub severity: Severity,
    /// What kind it is.
    pub code: Code,
    /// What is wrong, following the place.
    pub says: String,
    /// What to write instead.
    pub hint: String,
}

/// A finding as data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FindingData {
    /// `error` or `warning`.
    pub severity: Severity,
    /// Its kind.
    pub code: Code,
    /// The file as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub hint: String,
}

/// Everything found in one file, and the text it was found in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Findings {
    file: String,
    lines: Vec<String>,
    /// Where values stand that must not be shown: from a column of a line to its end.
    hidden: BTreeMap<usize, usize>,
    places: BTreeMap<String, Place>,
    /// By place, so that a file full of faults costs no more than its length.
    by_place: BTreeMap<Place, Vec<Finding>>,
}

impl Findings {
    /// Nothing found yet in `text`, read from `path`.
    pub fn new(path: &Path, text: &str) -> Self {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let mut hidden = BTreeMap::new();
        let mut in_key_block = false;
        for (index, line) in lines.iter().enumerate() {
            if in_key_block {
                hidden.insert(index + 1, 1);
            } else if let Some(column) = credential::column(line) {
                hidden.insert(index + 1, column);
            }
            in_key_block = (in_key_block || line.contains("-----BEGIN")) && !line.contains("-----END");
        }
        Self { file: path.display().to_string(), lines, hidden, places: BTreeMap::new(), by_place: BTreeMap::new() }
    }

    /// Adds what refuses the file.
    pub fn fault(&mut self, code: Code, place: Place, says: impl Into<String>, hint: impl Into<String>) {
        self.add(Finding { place, severity: Severity::Error, code, says: says.into(), hint: hint.into() });
    }

    /// Adds what does not.
    pub fn warning(&mut self, code: Code, place: Place, says: impl Into<String>, hint: impl Into<String>) {
        self.add(Finding { place, severity: Severity::Warning, code, says: says.into(), hint: hint.into() });
    }

    /// A secret in clear says everything about its place; nothing else there is worth a line.
    fn add(&mut self, finding: Finding) {
        let credential = finding.code == Code::Credential;
        if credential {
            self.hide(finding.place);
        } else if finding.code.is_of_key() {
            self.hide_value(finding.place);
        }
        let known = self.by_place.entry(finding.place).or_default();
        if known.iter().any(|known| known.code == Code::Credential || *known == finding) {
            return;
        }
        if credential {
            known.clear();
        }
        known.push(finding);
    }

    /// Shows nothing of that line from that place on.
    pub(super) fn hide(&mut self, place: Place) {
        let column = self.hidden.entry(place.line).or_insert(place.column);
        *column = place.column.min(*column);
    }

    /// Shows nothing of what stands behind the key at that place.
    pub(crate) fn hide_value(&mut self, key: Place) {
        let text = self.lines.get(key.line.saturating_sub(1)).map_or("", String::as_str);
        let rest = text.chars().skip(key.column + key.width - 1);
        let lead = rest.take_while(|c| matches!(c, ' ' | ':')).count();
        self.hide(Place { line: key.line, column: key.column + key.width + lead, width: 1 });
    }

    /// Hides all values in the lines that have findings, where the file could not be read as a whole: it is not known
    /// then what they are.
    pub(super) fn hide_unread(&mut self) {
        let lines: Vec<usize> = self.by_place.keys().map(|place| place.line).collect();
        for line in lines {
            let text = self.lines.get(line.saturating_sub(1)).map_or("", String::as_str);
            self.hide(Place { line, column: first_value(text), width: 1 });
        }
    }

    /// Remembers where `path` stands.
    pub(super) fn remember(&mut self, path: String, place: Place) {
        self.places.insert(path, place);
    }

    /// Where `path` stands, or the nearest block around it that is there.
    pub fn place(&self, path: &str) -> Place {
        let mut path = path;
        loop {
            if let Some(place) = self.places.get(path) {
                return *place;
            }
            match path.rfind(['.', '[']) {
                Some(end) => path = &path[..end],
                None => return Place { line: 1, column: 1, width: 1 },
            }
        }
    }

    /// Whether `path` is written in the file.
    pub fn has(&self, path: &str) -> bool {
        self.places.contains_key(path)
    }

    /// The findings, in the order of the file.
    pub fn all(&self) -> Vec<&Finding> {
        self.by_place.values().flatten().collect()
    }

    /// Whether anything refuses the file.
    pub fn is_refused(&self) -> bool {
        self.by_place.values().flatten().any(|finding| finding.severity == Severity::Error)
    }

    /// The file as it was named.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The findings as data.
    pub fn data(&self) -> Vec<FindingData> {
        let data = |finding: &Finding| FindingData {
            severity: finding.severity,
            code: finding.code,
            file: self.file.clone(),
            line: finding.place.line,
            column: finding.place.column,
            message: finding.says.clone(),
            hint: finding.hint.clone(),
        };
        self.all().into_iter().map(data).collect()
    }

    /// What refuses the file, without its warnings.
    pub fn faults(&self) -> String {
        let findings = self.all().into_iter().filter(|finding| finding.severity == Severity::Error);
        self.text(&findings.collect::<Vec<_>>())
    }

    fn text(&self, findings: &[&Finding]) -> String {
        let show = |finding: &&Finding| {
            let mut text = String::new();
            self.show(&mut text, finding);
            text
        };
        findings.iter().map(show).collect::<Vec<_>>().join("\n").trim_end_matches('\n').to_owned()
    }

    fn show(&self, out: &mut String, finding: &Finding) {
        let Place { line, column, width } = finding.place;
        let verdict = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        // Writing to a string does not fail.
        let _ = writeln!(out, "{verdict}: `{}:{line}:{column}` {}", self.file, finding.says);
        if let Some(text) = self.lines.get(line.saturating_sub(1)) {
            let (text, column, width) = self.visible(text, line, column, width);
            let margin = line.to_string();
            let _ = writeln!(out, "  {margin} | {text}");
            let _ = writeln!(
                out,
                "  {} | {}{}",
                " ".repeat(margin.len()),
                " ".repeat(column.saturating_sub(1)),
                "^".repeat(width.max(1))
            );
        }
        let _ = writeln!(out, "hint: {}", finding.hint);
    }

    /// The line as it may be shown, and where the mark goes below it.
    fn visible(&self, text: &str, line: usize, column: usize, width: usize) -> (String, usize, usize) {
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        let end = self.hidden.get(&line).map_or(usize::MAX, |column| column.saturating_sub(1));
        let all = text.chars().count();
        let from = if column > SHOWN_MAX { column - SHOWN_MAX / 2 } else { 0 };
        let to = end.min(from + SHOWN_MAX);
        let mut shown: String = text.chars().map(plain).skip(from).take(to.saturating_sub(from)).collect();
        if to < all {
            shown.push('…');
        }
        let column = (column - from.min(column)).min(shown.chars().count().max(1));
        let room = (shown.chars().count() + 1).saturating_sub(column).max(1);
        (shown, column, width.min(room))
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text(&self.all()))
    }
}

/// The column of what follows the first key of a line; of its first character where it starts with no key.
fn first_value(line: &str) -> usize {
    let of_key = |c: char| c.is_alphanumeric() || "_.-/\"'".contains(c);
    let start = line.chars().take_while(|c| matches!(c, ' ' | '-' | '{' | '[' | '?')).count();
    let key = line.chars().skip(start).take_while(|c| of_key(*c)).count();
    let lead = line.chars().skip(start + key).take_while(|c| matches!(c, ' ' | ':')).count();
    let has_key = line.chars().skip(start + key).take(lead).any(|c| c == ':');
    if has_key { start + key + lead + 1 } else { start + 1 }
}

/// Text of a file as a message may repeat it: nothing that may be a secret, and not too much.
pub(crate) fn quoted(text: &str) -> String {
    if credential::kind(text).is_some() || credential::is_random(text) {
        return "a value that may be a secret".into();
    }
    let short: String = text.chars().take(60).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if short.len() < text.len() { format!("`{short}…`") } else { format!("`{short}`") }
}

/// The word of `known` that was probably meant.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    // No word of the format is near as long: this bounds the work.
    if word.chars().count() > 40 {
        return None;
    }
    let near = |candidate: &&str| distance(&word, &candidate.to_lowercase());
    let best = known.into_iter().min_by_key(near)?;
    (near(&best) <= (word.chars().count() / 3).max(1)).then_some(best)
}

/// Insertions, removals, replacements and swaps of neighbours between two words.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut rows = vec![(0..=other.len()).collect::<Vec<usize>>()];
    for i in 1..=one.len() {
        let mut row = vec![i];
        for j in 1..=other.len() {
            let replace = rows[i - 1][j - 1] + usize::from(one[i - 1] != other[j - 1]);
            let mut best = replace.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_word_is_found_where_one_is_near() {
        let known = ["location", "serverType", "image"];
        assert_eq!(nearest("locaton", known), Some("location"));
        assert_eq!(nearest("servertype", known), Some("serverType"));
        assert_eq!(nearest("imgae", known), Some("image"));
        assert_eq!(nearest("zones", known), None);
        assert_eq!(nearest(&"x".repeat(100_000), known), None);
    }

    #[test]
    fn line_is_shown_with_a_mark_below_the_place() {
        let mut findings = Findings::new(Path::new("a.yml"), "id: Acme\n");
        findings.fault(Code::InvalidValue, Place { line: 1, column: 5, width: 4 }, "is wrong", "write `acme`");
        assert_eq!(
            findings.to_string(),
            "error: `a.yml:1:5` is wrong\n  1 | id: Acme\n    |     ^^^^\nhint: write `acme`"
        );
    }

    #[test]
    fn nothing_of_a_secret_is_shown_whatever_is_wrong_with_its_line() {
        let token = format!("ghp_{}", "a1B2".repeat(9));
        let mut findings = Findings::new(Path::new("a.yml"), &format!("id: {token} # {token}\n"));
        findings.fault(Code::InvalidValue, Place { line: 1, column: 1, width: 2 }, "is wrong", "write it");
        findings.fault(Code::InvalidValue, Place { line: 1, column: 30, width: 2 }, "is wrong", "write it");
        let text = findings.to_string();
        assert!(!text.contains("ghp_") && text.contains("1 | id: …"), "{text}");
    }

    #[test]
    fn nothing_behind_a_key_that_nobody_reads_is_shown() {
        for (line, shown) in [
            ("passwrd: hunter2", "1 | passwrd: …\n    | ^^^^^^^"),
            ("passwrd : hunter2", "1 | passwrd : …\n    | ^^^^^^^"),
            ("passwrd:", "1 | passwrd:\n    | ^^^^^^^"),
        ] {
            let mut findings = Findings::new(Path::new("a.yml"), line);
            findings.fault(Code::UnknownKey, Place { line: 1, column: 1, width: 7 }, "is unknown", "remove it");
            assert!(findings.to_string().contains(shown), "{findings}");
        }
        assert_eq!(["a: b", "  - a: b", "  b", "{ a: b", "A=b: c", ""].map(first_value), [4, 8, 3, 6, 1, 1]);
    }

    #[test]
    fn long_line_is_cut_around_the_place() {
        let mut findings = Findings::new(Path::new("a.yml"), &format!("{}wrong{}", "x ".repeat(300), " y".repeat(300)));
        findings.fault(Code::InvalidValue, Place { line: 1, column: 601, width: 5 }, "is wrong", "write it");
        assert!(findings.to_string().lines().all(|line| line.chars().count() < 160), "{findings}");
        assert!(findings.to_string().contains("wrong"));
    }
}

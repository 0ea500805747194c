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

const RED: Style = AnsiColor::Red.on_default().bold();
const YELLOW: Style = AnsiColor::Yellow.on_default().bold();

/// Shortest value that is masked, in characters.
const SHORTEST: usize = 8;

/// The two streams of a command.
#[derive(Clone)]
pub struct Ui {
    output: Output,
    quiet: bool,
    masker: Arc<Mutex<Masker>>,
}

impl Ui {
    /// Streams as the flags want them.
    pub fn new(global: &Global) -> Self {
        Self { output: global.output, quiet: global.quiet, masker: Arc::new(Mutex::new(Masker::new(SHORTEST))) }
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
        self.lock().hide(value);
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
        let text = self.lock().mask(text);
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

    /// A line on stderr as it stands, also under `--quiet`.
    pub fn talk(&self, text: &str) {
        let text = self.lock().mask(text);
        // Where stderr is gone there is nobody to tell.
        let _ = writeln!(anstream::stderr(), "{text}");
    }

    pub(super) fn masker(&self) -> Arc<Mutex<Masker>> {
        Arc::clone(&self.masker)
    }

    fn lock(&self) -> MutexGuard<'_, Masker> {
        self.masker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

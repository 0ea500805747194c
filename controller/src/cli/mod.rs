//! The command line: arguments in, data on stdout, talk on stderr, one exit code out.
//!
//! Every command is one file in `commands/`. Nothing else in the library prints or ends the process.

pub mod args;
pub mod commands;
pub mod failure;
mod live;
pub mod ui;

use std::any::Any;
use std::io::Write;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;

use clap::Parser as _;
use replicator_protocol::ids::FleetName;
use tracing_subscriber::EnvFilter;

use crate::home::{FleetFolder, Home};
pub use args::{Cli, Global};
pub use failure::{Exit, Failure};
pub use ui::Ui;

/// What every command is given.
pub struct Context {
    /// Where it says things.
    pub ui: Ui,
    /// The flags all commands share.
    pub global: Global,
}

impl Context {
    /// The controller's folder.
    ///
    /// # Errors
    ///
    /// The [`Failure`] to show where there is none that can be used.
    pub fn home(&self) -> Result<Home, Failure> {
        Ok(Home::from_environment(|name| std::env::var_os(name))?)
    }

    /// The fleet meant by `--context`, or the only one there is, and its folder.
    ///
    /// # Errors
    ///
    /// The [`Failure`] to show where there is none, or several.
    pub fn fleet(&self) -> Result<(FleetName, FleetFolder), Failure> {
        let home = self.home()?;
        let name = home.choose(self.global.context.as_ref())?;
        let folder = home.fleet(&name).allow_old_broker(self.global.allow_old_broker);
        Ok((name, folder))
    }
}

/// Runs the command the process was started with.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(usage) => {
            // Nothing is left to tell where stdout or stderr is gone.
            let _ = usage.print();
            return if usage.use_stderr() { Exit::Usage.into() } else { Exit::Done.into() };
        }
    };
    let ui = Ui::new(&cli.global);
    log_to_stderr(&cli.global, ui.clone());
    let context = Context { ui, global: cli.global };
    let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|source| Failure::error(&CannotStart(source)))?;
        runtime.block_on(Box::pin(commands::run(cli.command, &context)))
    }));
    match outcome {
        Ok(Ok(exit)) => exit.into(),
        Ok(Err(failure)) => {
            context.ui.failure(&failure);
            failure.exit().into()
        }
        Err(panic) => {
            context.ui.failure(&bug(panic.as_ref()));
            Exit::Bug.into()
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("cannot start the threads this needs")]
struct CannotStart(#[source] std::io::Error);

/// The panic's own text went to stderr already, by the standard hook.
fn bug(panic: &(dyn Any + Send)) -> Failure {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    Failure::bug(format!("this is a mistake in `replicator` itself: {text}")).hint(
        "please report it with the lines above; what was recorded stays recorded, and a second run goes on from there",
    )
}

fn log_to_stderr(global: &Global, ui: Ui) {
    let level = match global.verbose {
        0 if global.quiet => "error",
        0 => "warn",
        1 => "info,replicator=debug",
        2.. => "debug",
    };
    let filter = EnvFilter::try_from_env("REPLICATOR_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    let colour = anstream::stderr().current_choice() != anstream::ColorChoice::Never;
    let writer = move || MaskedStderr(ui.clone());
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer).with_ansi(colour);
    // A second subscriber exists in tests only, and the first one serves as well.
    let _ = log.try_init();
}

/// Stderr for log lines: a line is written whole, with every known secret hidden.
struct MaskedStderr(Ui);

impl Write for MaskedStderr {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        self.0.write(&String::from_utf8_lossy(line))?;
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        anstream::stderr().flush()
    }
}

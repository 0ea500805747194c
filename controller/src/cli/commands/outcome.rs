//! A report on a declaration: how long it is waited for, how it is shown, and how the command ends for it.

use std::time::Duration;

use replicator_protocol::ids::HostId;

use crate::bootstrap::Applied;
use crate::cli::{Context, Exit, Failure};
use crate::compiler::{self, Wanted};
use crate::planner::{ReportData, Unwell, report_text};

/// How long a report is waited for.
#[derive(Debug, Clone, clap::Args)]
pub struct Wait {
    /// Seconds to wait for the host's report.
    #[arg(long, value_name = "SECONDS", default_value_t = 900, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
}

impl Wait {
    /// The bound.
    pub fn bound(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }
}

/// Shows a report.
///
/// # Errors
///
/// The [`Failure`] to show where stdout takes no more.
pub fn show(
    context: &Context,
    host: &HostId,
    wanted: Option<(&Wanted, &[compiler::Place])>,
    applied: &Applied,
) -> Result<(), Failure> {
    let places = wanted.map_or(&[][..], |(_, places)| places);
    if context.ui.is_json() {
        context.ui.json(&ReportData::new(host, applied.position, &applied.report, places))?;
    } else {
        context.ui.data(report_text(&applied.report))?;
        if let Some((wanted, places)) = wanted {
            for place in places {
                context.ui.data(format!("  http://{}:{}/", place.host, wanted.listen.1))?;
            }
        }
    }
    Ok(())
}

/// How a command that shows `applied` ends.
///
/// # Errors
///
/// The [`Failure`] to show where not everything is as declared.
pub fn verdict(host: &HostId, applied: &Applied) -> Result<Exit, Failure> {
    Unwell::of(host, &applied.report).map_or(Ok(Exit::Done), |unwell| Err(unwell.into()))
}

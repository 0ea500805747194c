//! `replicator validate`: checks host specs and fleet files, offline and without a credential.

use std::path::PathBuf;

use serde::Serialize;

use crate::cli::{Context, Exit, Failure};
use crate::fleet::together::{self, Checked};
use crate::spec::Severity;
use crate::spec::finding::FindingData;

/// Arguments of `validate`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Findings go to stderr as FILE:LINE:COLUMN; with `-o json` they are data on stdout.

Examples:
  replicator validate
  replicator validate hosts/acme.yml clanker.yml
  replicator validate --strict -o json .")]
pub struct ValidateArgs {
    /// Host specs, fleet files, a folder with `hosts/*.yml` and a fleet file, or one of host specs [default: this
    /// folder].
    #[arg(value_name = "FILE|FOLDER")]
    paths: Vec<PathBuf>,
    /// A fleet file, as other commands take it: it is checked with its host, whatever it is called.
    #[arg(long, value_name = "FILE")]
    fleet: Option<PathBuf>,
    /// Let a warning refuse as well.
    #[arg(long)]
    strict: bool,
}

#[derive(Serialize)]
struct Outcome {
    files: Vec<String>,
    errors: usize,
    warnings: usize,
    findings: Vec<FindingData>,
}

/// Runs it.
///
/// # Errors
///
/// The [`Failure`] to show where something named cannot be read.
pub fn run(args: &ValidateArgs, context: &Context) -> Result<Exit, Failure> {
    let mut paths = args.paths.clone();
    paths.extend(args.fleet.clone());
    if paths.is_empty() {
        paths.push(".".into());
    }
    let checked = together::check(&paths).map_err(|error| Failure::from(error).as_usage())?;
    let outcome = outcome(&checked);
    let exit = match (outcome.errors, outcome.warnings) {
        _ if checked.unreadable => Exit::Usage,
        (0, 0) => Exit::Done,
        (0, _) if !args.strict => Exit::Done,
        _ => Exit::Failed,
    };
    if context.ui.is_json() {
        context.ui.json(&outcome)?;
        return Ok(exit);
    }
    for findings in checked.files.iter().filter(|findings| !findings.all().is_empty()) {
        context.ui.talk(&format!("{findings}\n"));
    }
    let summary = summary(&outcome);
    if exit == Exit::Done {
        context.ui.say(summary);
    } else {
        context.ui.talk(&summary);
    }
    Ok(exit)
}

fn outcome(checked: &Checked) -> Outcome {
    let findings: Vec<FindingData> = checked.files.iter().flat_map(|findings| findings.data()).collect();
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    Outcome {
        files: checked.files.iter().map(|findings| findings.file().to_owned()).collect(),
        errors: count(Severity::Error),
        warnings: count(Severity::Warning),
        findings,
    }
}

fn summary(outcome: &Outcome) -> String {
    let many = |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
    let (errors, warnings) = (many(outcome.errors, "error"), many(outcome.warnings, "warning"));
    format!("Checked {}: {errors}, {warnings}", many(outcome.files.len(), "file"))
}

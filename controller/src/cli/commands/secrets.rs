//! `replicator secrets`: values in through stdin, names out.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

use replicator_protocol::ids::SecretName;
use replicator_protocol::secret::SecretBytes;
use serde::Serialize;
use zeroize::Zeroizing;

use super::events::moment;
use crate::cli::{Context, Exit, Failure};
use crate::fleet::{self, FleetFile};
use crate::secrets::{Kept, Need, SecretStore, Set};
use crate::spec::HostSpec;
use crate::state::{self, App};

/// Most bytes read from stdin: above what can be kept, so that the store names the limit itself.
const READ_MAX: u64 = 128 * 1024;

/// What can be done with secrets.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Store a value, read from stdin; one line end at its end is stripped.
    #[command(
        after_help = "Examples:\n  replicator secrets set forgeToken < token.txt\n  pass show forge | replicator secrets set forgeToken"
    )]
    Set(SetArgs),
    /// Show the names that are stored or needed, when each was set and what for; never a value.
    List(ListArgs),
}

/// Where the store is.
#[derive(Debug, clap::Args)]
pub struct StoreArgs {
    /// The name the state is kept under [default: what the host spec says under `state.replicator.app`].
    #[arg(long, value_name = "NAME", value_parser = App::parse)]
    app: Option<App>,
    /// The fleet file that names the host spec [default: `clanker.yml` or `factory.yml` in this folder].
    #[arg(long, value_name = "FILE")]
    fleet: Option<PathBuf>,
}

impl StoreArgs {
    /// The files that say which store is meant and who needs what, where there are any.
    fn files(&self) -> Result<Option<(HostSpec, FleetFile)>, Failure> {
        let fleet = self.fleet.clone().or_else(|| fleet::find(Path::new("")));
        let Some(fleet) = fleet else { return Ok(None) };
        let (host, fleet) = fleet::together::load_fleet(&fleet)?;
        Ok(Some((host.value, fleet.value)))
    }

    /// The store's name: as given, else as the host spec has it, else the default of one.
    fn app(&self, files: Option<&(HostSpec, FleetFile)>) -> Result<App, Failure> {
        let app = self.app.clone().or_else(|| files.map(|(host, _)| host.state.app.clone()));
        app.map_or_else(|| App::parse(App::DEFAULT).map_err(|error| Failure::error(&error)), Ok)
    }
}

/// Arguments of `secrets set`.
#[derive(Debug, clap::Args)]
pub struct SetArgs {
    /// The name, as the spec has it after `secret:`.
    name: String,
    /// Taken only to be refused: a value on the command line is in the shell's history and in `/proc`.
    #[arg(hide = true, num_args = 0..)]
    value: Vec<String>,
    #[command(flatten)]
    store: StoreArgs,
}

/// Arguments of `secrets list`.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    #[command(flatten)]
    store: StoreArgs,
}

/// Runs it.
///
/// # Errors
///
/// The [`Failure`] to show.
pub async fn run(command: Command, context: &Context) -> Result<Exit, Failure> {
    match command {
        Command::Set(args) => set(args, context).await,
        Command::List(args) => list(args, context).await,
    }
}

async fn set(args: SetArgs, context: &Context) -> Result<Exit, Failure> {
    let name = name(&args)?;
    // With a name given, the files are not needed, and a fault in them is no reason to refuse a value.
    let files = if args.store.app.is_some() { None } else { args.store.files()? };
    if args.store.app.is_none() && files.is_none() {
        // Under the default name no host might ever look for it, and nobody would be told.
        return Err(Failure::usage(format!("no fleet file in this folder says for whom `{name}` is stored")).hint(
            "run it where `clanker.yml` lies, or name that file with `--fleet FILE`, or the store with `--app NAME`",
        ));
    }
    let app = args.store.app(files.as_ref())?;
    if std::io::stdin().is_terminal() {
        context.ui.say(format!("type the value of `{name}`, then Enter and Ctrl-D"));
    }
    let value = value(std::io::stdin())?;
    context.ui.hide(&value);
    let store = SecretStore::local(&context.home()?, &app)?;
    let outcome = store.set(&name, &value, state::now()).await?;
    match outcome {
        Set::Changed(generation) => {
            context.ui.say(format!("Stored `{name}` under `{app}`, generation {}", generation.0))
        }
        Set::Unchanged(generation) => {
            context.ui.say(format!("`{name}` holds that value already, generation {}", generation.0));
        }
    }
    Ok(Exit::Done)
}

/// Neither what is no name nor what follows is repeated: either may be the value.
fn name(args: &SetArgs) -> Result<SecretName, Failure> {
    if !args.value.is_empty() || args.name.contains('=') {
        return Err(Failure::usage("a value on the command line is refused: others on this machine can read it there")
            .hint("give it on stdin: `replicator secrets set NAME < FILE`; if it was a real one, replace it where it was issued"));
    }
    let name = args.name.strip_prefix("secret:").unwrap_or(&args.name);
    SecretName::parse(name).map_err(|invalid| {
        Failure::usage(invalid.to_string())
            .hint("write the name as the spec has it after `secret:`, the value on stdin")
    })
}

/// Reads the value: everything, less one line end at its end.
fn value(from: impl std::io::Read) -> Result<SecretBytes, Failure> {
    let mut bytes = Zeroizing::new(Vec::new());
    from.take(READ_MAX)
        .read_to_end(&mut bytes)
        .map_err(|source| Failure::usage("cannot read the value from stdin").caused_by(source))?;
    let end = [b"\r\n".as_slice(), b"\n"].into_iter().find(|end| bytes.ends_with(end)).map_or(0, <[u8]>::len);
    Ok(SecretBytes::new(bytes[..bytes.len() - end].to_vec()))
}

#[derive(Serialize)]
struct Row {
    name: SecretName,
    generation: Option<u64>,
    set_at: Option<String>,
    needed_for: Vec<String>,
}

async fn list(args: ListArgs, context: &Context) -> Result<Exit, Failure> {
    let files = args.store.files()?;
    let (app, is_named) = (args.store.app(files.as_ref())?, files.is_some());
    let kept = SecretStore::local(&context.home()?, &app)?.list().await?;
    let rows = rows(kept, &files.map(|(host, fleet)| fleet::needs(&host, &fleet)).unwrap_or_default());
    if context.ui.is_json() {
        context.ui.json(&rows)?;
        return Ok(Exit::Done);
    }
    if rows.is_empty() {
        // Nothing says there whose secret would be meant.
        let app_flag = if is_named { String::new() } else { format!(" --app {app}") };
        context.ui.say(format!(
            "no secret is stored under `{app}`; store one with `replicator secrets set NAME{app_flag} < FILE`"
        ));
        return Ok(Exit::Done);
    }
    let width = rows.iter().map(|row| row.name.as_str().len()).max().unwrap_or(0).max("NAME".len());
    context.ui.data(format!("{:<width$}  GENERATION  {:<20}  NEEDED FOR", "NAME", "SET"))?;
    for row in rows {
        let generation = row.generation.map_or_else(|| "-".into(), |generation| generation.to_string());
        let set_at = row.set_at.unwrap_or_else(|| "not set".into());
        let needed_for = if row.needed_for.is_empty() { "-".into() } else { row.needed_for.join(", ") };
        context.ui.data(format!("{:<width$}  {generation:<10}  {set_at:<20}  {needed_for}", row.name.as_str()))?;
    }
    Ok(Exit::Done)
}

/// Every name that is stored or needed, by name.
fn rows(kept: Vec<Kept>, needs: &[Need]) -> Vec<Row> {
    let mut rows: BTreeMap<SecretName, Row> = BTreeMap::new();
    let empty = |name: &SecretName| Row { name: name.clone(), generation: None, set_at: None, needed_for: Vec::new() };
    for need in needs {
        rows.entry(need.secret.clone()).or_insert_with(|| empty(&need.secret)).needed_for.push(need.reason.clone());
    }
    for Kept { name, generation, set_at } in kept {
        let row = rows.entry(name.clone()).or_insert_with(|| empty(&name));
        row.generation = Some(generation.0);
        row.set_at = set_at.map(moment);
    }
    rows.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(name: &str, value: &[&str]) -> SetArgs {
        let value = value.iter().map(ToString::to_string).collect();
        SetArgs { name: name.into(), value, store: StoreArgs { app: None, fleet: None } }
    }

    #[test]
    fn one_line_end_is_stripped_and_no_more() {
        for (given, kept) in
            [("a\n", "a"), ("a\r\n", "a"), ("a\n\n", "a\n"), ("a", "a"), ("a\nb\n", "a\nb"), ("\n", "")]
        {
            let Ok(value) = value(given.as_bytes()) else { panic!("unreadable") };
            assert_eq!(value.expose(), kept.as_bytes(), "{given:?}");
        }
    }

    #[test]
    fn value_on_the_command_line_is_refused_without_being_repeated() {
        for args in [args("token", &["planted-value"]), args("token=planted-value", &[]), args("planted-value", &[])] {
            let failure = name(&args).unwrap_err();
            assert_eq!(failure.exit(), Exit::Usage);
            assert!(!failure.to_string().contains("planted"), "{failure}");
        }
        assert_eq!(name(&args("secret:token", &[])).unwrap().as_str(), "token");
    }
}

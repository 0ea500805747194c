//! A new server certificate for the broker, under the authority hosts have pinned, and the signal to read it.

use std::path::PathBuf;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::{KeysError, Settings, files, tls};
use crate::home::FleetFolder;
use crate::point::{self, Effect};

/// Why there is no new certificate; the broker goes on with the one it has.
#[derive(Debug, thiserror::Error)]
pub enum RenewError {
    /// Keys or files.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// The broker has none.
    #[error("the broker of fleet `{0}` speaks plain text and has no certificate")]
    PlainText(replicator_protocol::ids::FleetName),
    /// The certificate is there, and the broker could not be told.
    #[error("the new certificate is in place, but the broker (process {pid}) could not be told")]
    NotTold {
        /// Its process.
        pid: i32,
        /// Why.
        source: rustix::io::Errno,
    },
}

impl RenewError {
    /// One line that names the next action.
    pub fn hint(&self) -> String {
        match self {
            Self::Keys(error) => error.hint(),
            Self::PlainText(_) => "there is nothing to renew".into(),
            Self::NotTold { pid, .. } => format!("run `kill -HUP {pid}` as the user it runs as, or start it again"),
        }
    }
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewed {
    /// The broker with this process number was told to read it.
    Told(i32),
    /// No broker runs from this folder here: it reads the certificate when it starts.
    AtStart,
}

/// Makes a server certificate for the names there were, and tells a broker that runs here; `now` since the Unix
/// epoch. Connections stay: they were proved when they were made.
///
/// # Errors
///
/// See [`RenewError`].
pub fn renew(fleet: &FleetFolder, now: Duration) -> Result<Renewed, RenewError> {
    let settings = Settings::load(fleet)?;
    let names: Vec<String> = settings.broker.urls.iter().filter_map(|url| name_in(url)).collect();
    if names.is_empty() {
        return Err(RenewError::PlainText(settings.fleet));
    }
    let path = tls::authority_key(fleet);
    let key = files::read_private(&path).map_err(KeysError::from)?;
    let malformed = || KeysError::Malformed { path: path.clone(), want: "a private key" };
    let key = std::str::from_utf8(&key).map_err(|_| malformed())?;
    let server = tls::server(&settings.fleet, key, &names, now).map_err(KeysError::Certificate)?;
    files::replace(&tls::server_file(&fleet.broker()), server.as_bytes()).map_err(KeysError::from)?;
    let Some(pid) = running(fleet)? else { return Ok(Renewed::AtStart) };
    let number = pid.as_raw_nonzero().get();
    kill_process(pid, Signal::HUP).map_err(|source| RenewError::NotTold { pid: number, source })?;
    point::behind(Effect::BrokerSignal);
    Ok(Renewed::Told(number))
}

/// The name or address between `tls://` and the port.
fn name_in(url: &str) -> Option<String> {
    let (name, _port) = url.strip_prefix("tls://")?.rsplit_once(':')?;
    Some(name.trim_start_matches('[').trim_end_matches(']').to_owned())
}

/// The broker that runs from this folder, as its pid file says and its command line confirms: a number alone may
/// have become another process.
fn running(fleet: &FleetFolder) -> Result<Option<Pid>, KeysError> {
    let Some(text) = files::read(&fleet.broker().join("nats.pid"))? else { return Ok(None) };
    let number = String::from_utf8_lossy(&text).trim().parse::<i32>().ok();
    let Some(pid) = number.and_then(Pid::from_raw) else { return Ok(None) };
    let command = PathBuf::from(format!("/proc/{}/cmdline", pid.as_raw_nonzero()));
    let Ok(command) = std::fs::read(command) else { return Ok(None) };
    let configuration = fleet.broker().join("nats.conf");
    let ours = String::from_utf8_lossy(&command).split('\0').any(|word| word == configuration.to_string_lossy());
    Ok(ours.then_some(pid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::home::Home;
    use crate::keys::broker::{Transport, Wanted, init};

    fn fleet(folder: &tempfile::TempDir, transport: Transport) -> FleetFolder {
        let home = Home::at(folder.path().join("home")).unwrap();
        let listen = "127.0.0.1:4222".parse().unwrap();
        init(&home, &Wanted { fleet: "lab".parse().unwrap(), listen, transport }, Duration::from_secs(9)).unwrap()
    }

    #[test]
    fn server_certificate_is_replaced_and_the_authority_stays() {
        let folder = tempfile::tempdir().unwrap();
        let names = vec!["broker.lab".to_owned(), "::1".to_owned()];
        let fleet = fleet(&folder, Transport::Tls { names });
        let file = tls::server_file(&fleet.broker());
        let before = (std::fs::read(&file).unwrap(), Settings::load(&fleet).unwrap());
        assert_eq!(renew(&fleet, Duration::from_secs(99)).unwrap(), Renewed::AtStart);
        assert_ne!(std::fs::read(&file).unwrap(), before.0);
        assert_eq!(Settings::load(&fleet).unwrap(), before.1);
    }

    #[test]
    fn process_that_is_not_this_broker_is_told_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let fleet = fleet(&folder, Transport::Tls { names: vec!["broker.lab".into()] });
        std::fs::write(fleet.broker().join("nats.pid"), std::process::id().to_string()).unwrap();
        assert_eq!(renew(&fleet, Duration::from_secs(99)).unwrap(), Renewed::AtStart);
    }

    #[test]
    fn plain_text_has_nothing_to_renew() {
        let folder = tempfile::tempdir().unwrap();
        let fleet = fleet(&folder, Transport::InsecureLoopback);
        assert!(matches!(renew(&fleet, Duration::from_secs(99)), Err(RenewError::PlainText(_))));
    }
}

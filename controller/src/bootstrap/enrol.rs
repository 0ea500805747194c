//! First contact with the agent on this machine, over its stdin and stdout.

use std::ffi::OsStr;
use std::process::Stdio;
use std::time::Duration;

use bytes::Bytes;
use replicator_protocol::enrolment::FRAME_MAX;
use replicator_protocol::ids::{HostId, HostUid};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{ChildStdin, ChildStdout};
use zeroize::Zeroizing;

use super::agent::Agent;
use super::process::Process;
use super::{Abilities, BootstrapError};
use crate::home::FleetFolder;
use crate::keys::admission::{Admission, Granted};
use crate::keys::settings::Settings;
use crate::point::{self, Effect};
use crate::publisher::accounts;
use crate::state::{self, Event, History, Log, event::Blob};

/// How long the whole exchange may take.
const EXCHANGE: Duration = Duration::from_secs(60);
/// How often it is looked whether another exchange has ended.
const LOOK: Duration = Duration::from_millis(100);

/// Waits until nobody else enrols this agent: one whose controller was cut off keeps its grant and ends by itself.
///
/// # Errors
///
/// [`BootstrapError::Late`].
pub(super) async fn others_ended(agent: &Agent) -> Result<(), BootstrapError> {
    let all = [&["enrol", "--stdio"][..], &["enrol", "--stdio", "--again"]].map(|last| {
        let root = [OsStr::new("--root"), agent.root.as_os_str()];
        root.into_iter().chain(last.iter().map(OsStr::new)).collect::<Vec<_>>()
    });
    let gone = async {
        while all.iter().any(|arguments| Process::running(agent.program(), arguments).is_some()) {
            tokio::time::sleep(LOOK).await;
        }
    };
    let late = |_| BootstrapError::Late { what: "another enrolment of the agent", seconds: EXCHANGE.as_secs() };
    tokio::time::timeout(EXCHANGE, gone).await.map_err(late)
}

/// Enrols the agent as `host`, which is `uid`, and records its certificate before the agent gets it. Returns the log
/// with that, and what the agent says it can apply.
///
/// # Errors
///
/// [`BootstrapError`]; run it again.
pub(super) async fn enrol(
    agent: &Agent,
    fleet: &FleetFolder,
    (host, uid): (&HostId, &HostUid),
    (log, history): (&Log, History),
    again: bool,
) -> Result<(History, Option<Abilities>), BootstrapError> {
    let toml = Settings::load(fleet)?.agent_broker()?;
    let (admission, bundle) = Admission::open(fleet, log.of_fleet(), (host, uid), toml, state::now()).await?;
    let mut arguments = vec!["enrol", "--stdio"];
    arguments.extend(again.then_some("--again"));
    let mut command = agent.command(&arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let start = |source| BootstrapError::Start { path: agent.binary.clone(), source };
    let mut child = command.spawn().map_err(start)?;
    point::behind(Effect::EnrolmentStart);
    let (Some(mut stdin), Some(mut stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(BootstrapError::Cut { said: String::new() });
    };
    let exchange = async {
        let bundle = Zeroizing::new(serde_json::to_vec(&bundle).map_err(BootstrapError::Bundle)?);
        send(&mut stdin, &bundle).await?;
        let challenged = admission.introduced(&receive(&mut stdout).await?, state::now()).await?;
        send(&mut stdin, challenged.challenge()).await?;
        let answered = challenged.answered(&receive(&mut stdout).await?, state::now())?;
        let jwt = accounts::admit_host(fleet, uid, answered.nats_key()).await?;
        let abilities = answered.abilities().map(Abilities::introduced);
        let Granted { grant, certificate_envelope, .. } = answered.grant(jwt)?;
        let event = Event::HostAdmitted { certificate: Blob(certificate_envelope) };
        let history = log.append(history, event, state::now()).await?;
        send(&mut stdin, &grant).await?;
        Ok((history, abilities))
    };
    let ended = tokio::time::timeout(EXCHANGE, exchange).await;
    drop(stdin);
    let output = tokio::time::timeout(EXCHANGE, child.wait_with_output()).await;
    let late = BootstrapError::Late { what: "the enrolment", seconds: EXCHANGE.as_secs() };
    let output = output.map_err(|_| BootstrapError::Late { what: "the enrolment", seconds: EXCHANGE.as_secs() })?;
    let output = output.map_err(start)?;
    let said = reason(&String::from_utf8_lossy(&output.stderr));
    match ended {
        Err(_) => Err(late),
        // What the agent said explains a stream that ended better than the stream does.
        Ok(Err(BootstrapError::Cut { .. })) => Err(BootstrapError::Cut { said }),
        Ok(Err(error)) => Err(error),
        Ok(Ok(enrolled)) if output.status.success() => Ok(enrolled),
        Ok(Ok(_)) => Err(BootstrapError::Cut { said }),
    }
}

/// What the agent said went wrong; its hint is for whoever runs it by hand.
fn reason(said: &str) -> String {
    let lines = said.lines().take_while(|line| !line.starts_with("hint: ")).map(str::trim);
    let text = lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ");
    text.strip_prefix("error: ").unwrap_or(&text).to_owned()
}

async fn send(stream: &mut ChildStdin, frame: &[u8]) -> Result<(), BootstrapError> {
    let cut = |_| BootstrapError::Cut { said: String::new() };
    let length = u32::try_from(frame.len()).unwrap_or(u32::MAX);
    stream.write_all(&length.to_be_bytes()).await.map_err(cut)?;
    stream.write_all(frame).await.map_err(cut)?;
    stream.flush().await.map_err(cut)?;
    point::behind(Effect::EnrolmentSend);
    Ok(())
}

async fn receive(stream: &mut ChildStdout) -> Result<Bytes, BootstrapError> {
    let cut = |_| BootstrapError::Cut { said: String::new() };
    let length = stream.read_u32().await.map_err(cut)?;
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if length > FRAME_MAX {
        return Err(BootstrapError::Cut { said: format!("a frame of {length} bytes (have {FRAME_MAX})") });
    }
    let mut frame = vec![0; length];
    stream.read_exact(&mut frame).await.map_err(cut)?;
    Ok(frame.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_is_what_the_agent_said_without_its_hint() {
        assert_eq!(reason("error: no disk\n  caused by: full\nhint: make room\n"), "no disk; caused by: full");
    }
}

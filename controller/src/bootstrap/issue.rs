//! Issues a declaration: its number by an append to the log, then the broker, then the host's report.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use prost::Message as _;
use replicator_protocol::envelope;
use replicator_protocol::event_words;
use replicator_protocol::ids::{Digest, FleetName, HostId, HostUid, Position};
use replicator_protocol::sealed_box::SealingPublicKey;
use replicator_protocol::wire::event::event::Body;
use replicator_protocol::wire::event::{ApplyReported, Event as HostEvent};

use super::{Abilities, BootstrapError, Since};
use crate::compiler::{Compiled, Head, intent_hash, seal};
use crate::home::FleetFolder;
use crate::keys::signing::{self, Signer};
use crate::keys::{Keyrings, certificates};
use crate::planner;
use crate::publisher::{Outcome, PublishError, Publisher};
use crate::serve::Store;
use crate::state::event::{Blob, Hash, Said};
use crate::state::{self, Event, History, HostState, Log, LogError, Status};

/// Times a lost race is run again before giving up.
const ATTEMPTS: u32 = 5;

/// What is to be declared.
pub struct Request {
    /// The resources.
    pub compiled: Compiled,
    /// The secrets they need.
    pub values: seal::Values,
    /// The revision of the spec.
    pub spec_revision: String,
    /// How long the report is waited for.
    pub timeout: Duration,
}

/// Whose declaration it is, and who says so.
pub(super) struct Issuer<'a> {
    pub(super) folder: &'a FleetFolder,
    pub(super) fleet: &'a FleetName,
    pub(super) host: &'a HostId,
    pub(super) log: &'a Log,
    pub(super) publisher: &'a Publisher,
    /// Where the collector stores, where it is on this machine.
    pub(super) collected: PathBuf,
    pub(super) say: &'a (dyn Fn(String) + Sync),
    /// Where a finished step is told.
    pub(super) step: &'a (dyn Fn(String) + Sync),
}

impl Issuer<'_> {
    /// Gives `request` the next number after `history`, publishes it, and waits for the report.
    ///
    /// # Errors
    ///
    /// [`BootstrapError`]; with its number once given, it is published by the next run at the latest as history.
    pub(super) async fn issue(
        &self,
        mut history: History,
        request: &Request,
    ) -> Result<(Position, ApplyReported), BootstrapError> {
        let since = {
            let store = Store::read_only(&self.collected);
            let heard = (self.folder, store.as_ref().ok());
            Abilities::demand_of(&history.state, self.host, heard, &request.compiled.resources)?;
            Since::ask(&history.state, store.as_ref(), Ok(self.publisher)).await
        };
        since.unheard.iter().for_each(|why| tracing::warn!(why, "what the host reported meanwhile may be missing"));
        for _ in 0..ATTEMPTS {
            match self.append(history, &since, request).await {
                Ok(history) => return self.publish(history, request.timeout).await,
                // Somebody else was first: another number, and another plan to name.
                Err(BootstrapError::Log(LogError::Lost { .. })) => history = self.log.read().await?,
                Err(error) => return Err(error),
            }
        }
        Err(BootstrapError::Busy { host: self.host.clone() })
    }

    fn uid(&self, history: &History) -> Result<HostUid, BootstrapError> {
        let not_up = || BootstrapError::NotUp { host: self.host.clone(), status: history.state.status };
        let (fleet, uid) = history.state.identity.as_ref().ok_or_else(not_up)?;
        if history.state.status != Status::Admitted {
            return Err(not_up());
        }
        if fleet != self.fleet {
            let (host, got, have) = (self.host.clone(), self.fleet.clone(), fleet.clone());
            return Err(BootstrapError::OtherFleet { host, got, have });
        }
        Ok(uid.clone())
    }

    async fn append(&self, mut history: History, since: &Since, request: &Request) -> Result<History, BootstrapError> {
        let uid = self.uid(&history)?;
        // What it starts from comes before it, so that the log alone tells why it is as it is.
        for event in since.entries(&history.state) {
            history = self.log.append(history, event, state::now()).await?;
        }
        let state = &history.state;
        let certificate = state.certificate.clone().unwrap_or_default();
        let host = certificates::believe(certificate, &uid, &Keyrings::load(self.folder)?.current)?;
        let sealing = SealingPublicKey::from_bytes(&host.certificate.sealing_key)?;
        let head = Head {
            fleet: self.fleet.clone(),
            host: self.host.clone(),
            uid,
            position: state.next_position(),
            issued_at: state::now(),
            plan_id: Digest([0; 32]),
            previous: state.last_issued().map(|issued| issued.hash),
            spec_revision: request.spec_revision.clone(),
        };
        let mut declaration = request.compiled.declaration(head);
        let intent = intent_hash(&declaration);
        let plan = planner::id(&intent, history.head(), state.reported.as_ref().map(|reported| reported.position));
        declaration.plan_id = Bytes::copy_from_slice(&plan.0);
        let position = declaration.position;
        let message = seal::seal(declaration, &sealing, &request.values)?.to_wire();
        let signed = envelope::sign(&message, &[&signing::load(self.folder, Signer::Declare)?]);
        let event = Event::DeclarationIssued {
            position,
            hash: Hash(Digest::of(&message.encode_to_vec())),
            intent_hash: Hash(intent),
            plan_id: Hash(plan),
            envelope: Blob(signed),
        };
        Ok(self.log.append(history, event, state::now()).await?)
    }

    async fn publish(&self, history: History, timeout: Duration) -> Result<(Position, ApplyReported), BootstrapError> {
        let uid = self.uid(&history)?;
        let Some(issued) = history.state.last_issued().cloned() else {
            return Err(BootstrapError::NotUp { host: self.host.clone(), status: history.state.status });
        };
        let position = issued.position;
        let sent = match self.publisher.publish_declaration(&uid, position, &issued.envelope).await {
            Err(PublishError::Overtaken { have, .. }) => return Err(self.overtaken(position, have).await?),
            sent => sent?,
        };
        self.log.append(history, Event::DeclarationPublished { position }, state::now()).await.or_else(lost)?;
        (self.say)(format!("Published declaration {} for `{}`; waiting for its report", position.sequence, self.host));
        let mut told = |event: &HostEvent| {
            if let Some(Body::StepFinished(step)) = &event.body
                && let Some(result) = &step.result
            {
                (self.step)(format!("  {:<9}  {}", event_words::outcome(result.outcome), result.resource));
            }
        };
        let outcome = self.publisher.wait_for_report(&uid, position, &sent, timeout, &mut told).await?;
        let host = self.host.clone();
        match outcome {
            Outcome::Applied(report, said) => {
                self.seen(position, &report, &said).await?;
                Ok((position, report))
            }
            Outcome::Refused(refused) => Err(BootstrapError::Refused {
                host,
                sequence: position.sequence,
                code: refused.code,
                fields: refused.fields,
            }),
            Outcome::Equivocation => Err(BootstrapError::Equivocation { host, position }),
            Outcome::Superseded => Err(BootstrapError::Superseded { host, position }),
        }
    }

    /// Who issued the later declaration that lies at the broker already, as the log has it.
    async fn overtaken(&self, position: Position, have: Position) -> Result<BootstrapError, BootstrapError> {
        let entries = self.log.read().await?.entries;
        let issued = |event: &Event| matches!(event, Event::DeclarationIssued { position, .. } if *position == have);
        let entry = entries.iter().find(|entry| issued(&entry.event));
        // Another of the same number is not in this log: it was issued by a controller with another one.
        let by = entry.filter(|_| have != position).map(|entry| (entry.by.clone(), entry.at));
        let (got, have) = (position.sequence, have.sequence);
        Ok(BootstrapError::Overtaken { host: self.host.clone(), got, have, by })
    }

    /// Records the report, whoever appended meanwhile.
    async fn seen(&self, position: Position, report: &ApplyReported, said: &Said) -> Result<(), BootstrapError> {
        let event = |state: &HostState| {
            // Where it is gone a later report was seen by somebody else: this one adds nothing.
            let is_known = state.issued.contains_key(&position);
            Ok(is_known.then(|| Event::apply_seen(position, report, said.clone())))
        };
        let seen = self.log.append_newest(ATTEMPTS, state::now(), event).await;
        seen.map_err(|error: LogError| match error {
            LogError::Lost { .. } => BootstrapError::Busy { host: self.host.clone() },
            LogError::Gap { .. }
            | LogError::Entry { .. }
            | LogError::Later { .. }
            | LogError::Illegal { .. }
            | LogError::Objects(_) => error.into(),
        })
    }
}

/// A lost race about what is only told is none: the next run sees what the broker holds.
fn lost(error: LogError) -> Result<History, LogError> {
    match error {
        LogError::Lost { .. } => Ok(History::default()),
        LogError::Gap { .. }
        | LogError::Entry { .. }
        | LogError::Later { .. }
        | LogError::Illegal { .. }
        | LogError::Objects(_) => Err(error),
    }
}

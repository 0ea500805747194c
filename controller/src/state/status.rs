//! The state of one host: one total function from what was known and what happened to what is known now.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bytes::Bytes;
use prost::Message as _;
use replicator_protocol::ids::{Digest, FleetName, HostUid, Position, ResourceId};
use replicator_protocol::wire::event::ApplyReported;

use super::event::{Entry, Event, Said, Supervisor};
use super::fold::{Fold, Illegal};
use super::known::{self, Known};

/// How far a host has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Status {
    /// Nothing was ever recorded.
    #[default]
    Unknown,
    /// It has a number.
    Defined,
    /// It has a certificate.
    Admitted,
    /// Nothing more is declared for it; its agent and its account go.
    Retiring,
    /// It is gone. It may be defined again, under another number.
    Retired,
}

impl std::fmt::Display for Status {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Unknown => "unknown",
            Self::Defined => "defined",
            Self::Admitted => "admitted",
            Self::Retiring => "retiring",
            Self::Retired => "retired",
        })
    }
}

/// A declaration that has its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issued {
    /// Its number.
    pub position: Position,
    /// SHA-256 of the signed payload.
    pub hash: Digest,
    /// Over everything compiled.
    pub intent_hash: Digest,
    /// Names the plan it came from.
    pub plan_id: Digest,
    /// What is published.
    pub envelope: Bytes,
    /// When, in milliseconds since the Unix epoch.
    pub at: u64,
    /// Whether the broker is known to hold it.
    pub published: bool,
}

/// The report that was seen last.
#[derive(Debug, Clone, PartialEq)]
pub struct Reported {
    /// On which declaration.
    pub position: Position,
    /// What it says.
    pub report: ApplyReported,
    /// Where the host said it, where that is known.
    pub said: Option<Said>,
    /// When it was seen, in milliseconds since the Unix epoch.
    pub at: u64,
}

/// Everything known of one host. The default is that of a host nothing was recorded of.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HostState {
    /// How far it has come.
    pub status: Status,
    /// Its fleet and number, once defined.
    pub identity: Option<(FleetName, HostUid)>,
    /// Its signed certificate, once admitted.
    pub certificate: Option<Bytes>,
    /// What keeps its agent running and where that one lives, once set up.
    pub agent: Option<(Supervisor, PathBuf)>,
    /// Declarations with no report yet, and the last one with a report; in order.
    pub issued: BTreeMap<Position, Issued>,
    /// The report seen last.
    pub reported: Option<Reported>,
    /// Its resources as they are known to be.
    pub known: BTreeMap<ResourceId, Known>,
}

impl Fold for HostState {
    type Event = Event;

    fn says(event: &Event) -> String {
        event.says()
    }

    fn after(self, entry: &Entry) -> Result<Self, Illegal> {
        let illegal = |because: &str| Illegal { event: entry.event.says(), because: because.into() };
        let status = self.status;
        match (&entry.event, status) {
            (Event::HostDefined { fleet, uid }, Status::Unknown | Status::Retired) => {
                if self.identity.as_ref().is_some_and(|(_, last)| last == uid) {
                    return Err(illegal("a number is never used again"));
                }
                Ok(Self { status: Status::Defined, identity: Some((fleet.clone(), uid.clone())), ..Self::default() })
            }
            (Event::HostDefined { .. }, Status::Defined | Status::Admitted | Status::Retiring) => {
                Err(illegal("the host has a number already"))
            }
            (Event::HostAdmitted { certificate }, Status::Defined | Status::Admitted) => {
                Ok(Self { status: Status::Admitted, certificate: Some(certificate.0.clone()), ..self })
            }
            (Event::AgentSetUp { supervisor, root }, Status::Defined | Status::Admitted) => {
                Ok(Self { agent: Some((*supervisor, root.clone())), ..self })
            }
            (Event::DeclarationIssued { .. }, Status::Admitted) => self.after_issue(entry),
            (Event::DeclarationPublished { position }, Status::Admitted) => {
                let mut state = self;
                let issued = state.issued.get_mut(position);
                issued.ok_or_else(|| illegal("no such declaration was issued"))?.published = true;
                Ok(state)
            }
            (Event::ApplySeen { position, report, said }, Status::Admitted) => {
                let report = ApplyReported::decode(report.0.clone()).map_err(|_| illegal("the report is none"))?;
                let reported = Reported { position: *position, report, said: said.clone(), at: entry.at };
                self.after_report(reported).map_err(|because| illegal(&because))
            }
            (Event::RetirementBegun { uid }, Status::Defined | Status::Admitted) if self.is(uid) => Ok(Self {
                // No declaration stays: none of a host that goes is published again.
                status: Status::Retiring,
                identity: self.identity,
                agent: self.agent,
                known: self.known,
                ..Self::default()
            }),
            (Event::HostRetired { uid }, Status::Defined | Status::Admitted | Status::Retiring) if self.is(uid) => {
                Ok(Self { status: Status::Retired, identity: self.identity, ..Self::default() })
            }
            (
                Event::RetirementBegun { .. } | Event::HostRetired { .. },
                Status::Defined | Status::Admitted | Status::Retiring,
            ) => Err(illegal("it is of another number, or begun already")),
            (
                Event::HostAdmitted { .. } | Event::AgentSetUp { .. },
                Status::Unknown | Status::Retiring | Status::Retired,
            )
            | (Event::RetirementBegun { .. } | Event::HostRetired { .. }, Status::Unknown | Status::Retired)
            | (
                Event::DeclarationIssued { .. } | Event::DeclarationPublished { .. } | Event::ApplySeen { .. },
                Status::Unknown | Status::Defined | Status::Retiring | Status::Retired,
            ) => Err(illegal(&format!("the host is {status}"))),
        }
    }
}

impl HostState {
    fn is(&self, uid: &HostUid) -> bool {
        self.identity.as_ref().is_some_and(|(_, ours)| ours == uid)
    }

    /// The declaration issued last.
    pub fn last_issued(&self) -> Option<&Issued> {
        self.issued.last_key_value().map(|(_, issued)| issued)
    }

    /// The number the next declaration gets: the last one's, plus 1.
    pub fn next_position(&self) -> Position {
        self.last_issued().map_or(Position { epoch: 1, sequence: 1 }, |last| Position {
            epoch: last.position.epoch,
            sequence: last.position.sequence + 1,
        })
    }

    /// Whether nothing is left of what was ever declared: the last declaration was reported on, and had nothing.
    pub fn has_nothing(&self) -> bool {
        let last = self.last_issued().map(|issued| issued.position);
        self.known.is_empty() && last == self.reported.as_ref().map(|reported| reported.position)
    }

    fn after_issue(mut self, entry: &Entry) -> Result<Self, Illegal> {
        let Event::DeclarationIssued { position, hash, intent_hash, plan_id, envelope } = &entry.event else {
            return Ok(self);
        };
        let expected = self.next_position();
        if *position != expected {
            let because = format!("got number {}, have {} to give", position.sequence, expected.sequence);
            return Err(Illegal { event: entry.event.says(), because });
        }
        let issued = Issued {
            position: *position,
            hash: hash.0,
            intent_hash: intent_hash.0,
            plan_id: plan_id.0,
            envelope: envelope.0.clone(),
            at: entry.at,
            published: false,
        };
        self.issued.insert(*position, issued);
        Ok(self)
    }

    /// What is known once `reported` is.
    ///
    /// # Errors
    ///
    /// Why not, in words: the declaration is not ours, or a later one was reported on already.
    pub fn after_report(mut self, reported: Reported) -> Result<Self, String> {
        let position = reported.position;
        let issued = self.issued.get(&position).ok_or("it reports on no declaration that awaits one")?;
        let declaration = known::declared(&issued.envelope).map_err(|refusal| refusal.to_string())?;
        self.known = known::after(std::mem::take(&mut self.known), &declaration, &reported.report);
        self.issued = self.issued.split_off(&position);
        self.reported = Some(reported);
        Ok(self)
    }
}

//! Where each host stands, by its own signed words.

use replicator_protocol::wire::event::event::Body;
use serde::{Deserialize, Serialize};

use super::host_history::{Apply, Number};
use crate::serve::store::Stored;

/// One host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostStatus {
    /// Its uid.
    pub host: String,
    /// The chain it spoke of last, hex.
    pub chain: String,
    /// Chains it has begun: more than one means that its ledger was lost, set aside or rolled back.
    pub chains: u64,
    /// The last number of that chain that is stored.
    pub head: u64,
    /// The hash of that event, hex.
    pub head_hash: String,
    /// When the last event came in, in milliseconds since the Unix epoch, by the collector's clock.
    pub heard: u64,
    /// The agent's version.
    pub agent_version: String,
    /// What keeps the agent running.
    pub supervisor: String,
    /// The declaration it accepted last.
    pub accepted: Option<Number>,
    /// Its last report on a declaration, or on a look after one.
    pub applied: Option<Apply>,
    /// Why it refused the last declaration that reached it; gone with the next one it accepts.
    pub refused: Option<String>,
    /// It has seen two declarations of one number.
    pub equivocation: bool,
    /// Resources found other than declared since the last report.
    pub drift: u64,
    /// How far its clock was off when it last noticed, in milliseconds; negative where it was behind.
    pub clock_fault: Option<i64>,
}

impl HostStatus {
    /// A host that has said nothing.
    pub fn new(host: &str) -> Self {
        Self {
            host: host.into(),
            chain: String::new(),
            chains: 0,
            head: 0,
            head_hash: String::new(),
            heard: 0,
            agent_version: String::new(),
            supervisor: String::new(),
            accepted: None,
            applied: None,
            refused: None,
            equivocation: false,
            drift: 0,
            clock_fault: None,
        }
    }

    /// The status after `stored`: total, and the same whenever it is folded.
    #[must_use]
    pub fn after(mut self, stored: &Stored) -> Self {
        let event = &stored.event;
        let chain = hex::encode(&event.chain);
        if self.chain != chain {
            self.chain = chain;
            self.chains += 1;
        }
        self.head = event.number;
        self.head_hash = stored.hash.to_string();
        self.heard = stored.received;
        match &event.body {
            Some(Body::ChainStarted(started)) => self.agent_version.clone_from(&started.agent_version),
            Some(Body::AgentStarted(started)) => {
                self.agent_version.clone_from(&started.agent_version);
                self.supervisor.clone_from(&started.supervisor);
            }
            Some(Body::DeclarationAccepted(_)) => {
                self.accepted = event.declaration.as_ref().map(Number::from);
                self.refused = None;
                // It is of a later number: what carried one number twice is behind it.
                self.equivocation = false;
            }
            Some(Body::DeclarationRefused(refused)) => self.refused = Some(refused.code.clone()),
            Some(Body::Equivocation(_)) => self.equivocation = true,
            Some(Body::ApplyReported(_)) => {
                self.applied = Apply::of(event).or(self.applied);
                self.drift = 0;
            }
            Some(Body::DriftFound(_)) => self.drift += 1,
            Some(Body::ClockFault(fault)) => self.clock_fault = Some(fault.offset),
            Some(
                Body::Enrolled(_)
                | Body::DeclarationSuperseded(_)
                | Body::StepsPlanned(_)
                | Body::StepFinished(_)
                | Body::KeyringAccepted(_)
                | Body::LedgerSetAside(_)
                | Body::LedgerRotated(_)
                | Body::LedgerDropped(_)
                | Body::LedgerPutBack(_)
                | Body::RecordRecovered(_)
                | Body::OriginalKept(_)
                | Body::EnrolmentRefused(_),
            )
            | None => {}
        }
        self
    }
}

//! Brings the modules together, in order, and checks the whole.

use bytes::Bytes;
use prost::Message as _;
use replicator_protocol::declaration::{Declaration, Mode};
use replicator_protocol::envelope::ENVELOPE_MAX;
use replicator_protocol::ids::{Digest, FleetName, HostId, HostUid, InvalidId, Position};
use replicator_protocol::resources::Resource;
use replicator_protocol::wire::declaration::Sealed;

use super::error::CompileError;
use super::intent::{Place, Wanted};
use super::{base, gateway, pod, proxy, seal};
use crate::secrets::{Need, needed};

/// Separates intent hashes from every other digest.
const INTENT: &[u8] = b"replicator intent v1\0";
/// Bytes kept free for what surrounds the resources: head, type and signatures of the envelope.
const ENVELOPE_ROOM: usize = 4 * 1024;

/// The host's resources, in order, with the secrets' places still empty.
#[derive(Debug, Clone, PartialEq)]
pub struct Compiled {
    /// In the order they are applied.
    pub resources: Vec<Resource>,
    /// The public names and where they lead.
    pub places: Vec<Place>,
}

/// What stands at the head of a declaration: decided when it is issued, not when it is compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The fleet.
    pub fleet: FleetName,
    /// The host.
    pub host: HostId,
    /// The host's number.
    pub uid: HostUid,
    /// The declaration's number.
    pub position: Position,
    /// Milliseconds since the Unix epoch.
    pub issued_at: u64,
    /// Names the plan.
    pub plan_id: Digest,
    /// The declaration before it.
    pub previous: Option<Digest>,
    /// The revision of the spec.
    pub spec_revision: String,
}

/// Every secret `wanted` needs, with a reason each.
#[must_use]
pub fn needs(wanted: &Wanted) -> Vec<Need> {
    let mut needs: Vec<Need> = wanted.gateway.iter().flat_map(gateway::needs).collect();
    needs.extend(wanted.pods.iter().flat_map(pod::needs));
    needs.sort();
    needs.dedup();
    needs
}

/// Compiles `wanted`. Equal input gives equal resources, byte for byte.
///
/// The proxy comes last: a name leads somewhere only once what it leads to stands.
///
/// # Errors
///
/// [`CompileError`], with everything that is wrong and not the first.
pub fn compile(wanted: &Wanted) -> Result<Compiled, CompileError> {
    needed::demand(&needs(wanted), &wanted.secrets.keys().cloned().collect())?;
    let mut places = Vec::new();
    let mut resources = base::compile(wanted)?;
    if let Some(gateway) = &wanted.gateway {
        places.push(gateway::place(gateway));
        resources.extend(gateway::compile(wanted, gateway)?);
    }
    for pod in &wanted.pods {
        places.extend(pod::places(wanted, pod));
        resources.extend(pod::compile(wanted, pod)?);
    }
    resources.extend(proxy::compile(wanted, &places)?);
    let compiled = Compiled { resources, places };
    compiled.check(wanted)?;
    Ok(compiled)
}

impl Compiled {
    /// Nothing at all: what a host that goes down is told.
    #[must_use]
    pub fn nothing() -> Self {
        Self { resources: Vec::new(), places: Vec::new() }
    }

    /// The declaration under `head`, the secrets' places still empty.
    #[must_use]
    pub fn declaration(&self, head: Head) -> Declaration {
        Declaration {
            fleet: head.fleet,
            host: head.host,
            uid: head.uid,
            position: head.position,
            issued_at: head.issued_at,
            not_after: None,
            mode: Mode::Converge,
            plan_id: Bytes::copy_from_slice(&head.plan_id.0),
            previous: head.previous.map(|hash| Bytes::copy_from_slice(&hash.0)).unwrap_or_default(),
            spec_revision: head.spec_revision,
            names: Vec::new(),
            carried_ports: Vec::new(),
            resources: self.resources.clone(),
            acknowledged: Vec::new(),
        }
    }

    fn check(&self, wanted: &Wanted) -> Result<(), CompileError> {
        let head = blank(wanted).map_err(|source| CompileError::Name { what: wanted.host.to_string(), source })?;
        let declaration = self.declaration(head);
        let faults = declaration.faults();
        if !faults.is_empty() {
            return Err(CompileError::Faults(faults));
        }
        let wire = declaration.to_wire();
        let (got, have) = (wire.encoded_len() + ENVELOPE_ROOM, ENVELOPE_MAX);
        let sizes = wire.resources.iter().map(prost::Message::encoded_len);
        match self.resources.iter().zip(sizes).max_by_key(|(_, size)| *size) {
            Some((largest, size)) if got > have => {
                Err(CompileError::TooLarge { got, have, largest: largest.id.clone(), size })
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// A head that says nothing: for checks over what is compiled.
fn blank(wanted: &Wanted) -> Result<Head, InvalidId> {
    Ok(Head {
        fleet: wanted.fleet.clone(),
        host: wanted.host.clone(),
        uid: HostUid::parse(&"0".repeat(32))?,
        position: Position { epoch: 1, sequence: 1 },
        issued_at: 0,
        plan_id: Digest([0; 32]),
        previous: None,
        spec_revision: String::new(),
    })
}

/// Tells whether two declarations ask for the same: over everything but the head's numbers and times, secrets as
/// name and generation.
#[must_use]
pub fn intent_hash(declaration: &Declaration) -> Digest {
    let mut same = declaration.clone();
    for (_, sealed) in same.resources.iter_mut().flat_map(seal::places) {
        let Sealed { secret, generation, .. } = std::mem::take(sealed);
        *sealed = Sealed { secret, generation, ..Sealed::default() };
    }
    same.position = Position { epoch: 0, sequence: 0 };
    same.issued_at = 0;
    same.plan_id = Bytes::new();
    same.previous = Bytes::new();
    same.spec_revision = String::new();
    Digest::of(&[INTENT, &same.to_wire().encode_to_vec()].concat())
}

#[cfg(test)]
mod tests;

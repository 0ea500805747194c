//! A whole declaration, checked: what an agent applies and what a compiler emits.
//!
//! Fields of one resource are checked in [`crate::resources`]; the rules over all of them in
//! [`crate::validate`]. Every fault is found, not the first.

use std::fmt;

use bytes::Bytes;

use crate::ids::{FleetName, HostId, HostUid, Position, ResourceId};
use crate::refusal::{Code, Refusal};
use crate::resources::{Fault, Resource};
use crate::validate;
use crate::wire::declaration as wire;

/// The highest vocabulary level spoken here. Agents accept this level and the one below it.
pub const LEVEL: u32 = 1;

/// What a host does with things it finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Leaves what was found.
    Adopt,
    /// Makes it so, keeping originals.
    Converge,
}

impl fmt::Display for Mode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Adopt => "adopt",
            Self::Converge => "converge",
        })
    }
}

/// The whole desired state of one host at one position.
#[derive(Debug, Clone, PartialEq)]
pub struct Declaration {
    /// The fleet it is for.
    pub fleet: FleetName,
    /// The host's name for people.
    pub host: HostId,
    /// The host's number.
    pub uid: HostUid,
    /// Where it stands; the only thing that decides order.
    pub position: Position,
    /// Milliseconds since the Unix epoch, UTC; for people.
    pub issued_at: u64,
    /// Milliseconds since the Unix epoch after which it is not taken up any more.
    pub not_after: Option<u64>,
    /// What is done with things found.
    pub mode: Mode,
    /// Names the plan it came from.
    pub plan_id: Bytes,
    /// SHA-256 of the one before it; empty for the first.
    pub previous: Bytes,
    /// The revision of the spec it was compiled from.
    pub spec_revision: String,
    /// Names every machine file gets.
    pub names: Vec<wire::HostEntry>,
    /// Ports bound by what came with the machine.
    pub carried_ports: Vec<u32>,
    /// In the order they are applied.
    pub resources: Vec<Resource>,
    /// Resources whose destructive change the operator has agreed to.
    pub acknowledged: Vec<ResourceId>,
}

impl Declaration {
    /// Checks a message whole.
    ///
    /// # Errors
    ///
    /// [`Code::UnsupportedLevel`], or [`Code::InvalidDeclaration`] with the first fault and how many there are.
    pub fn from_wire(message: &wire::Declaration) -> Result<Self, Refusal> {
        if !(LEVEL.saturating_sub(1).max(1)..=LEVEL).contains(&message.level) {
            return Err(Refusal::new(Code::UnsupportedLevel).with("got", message.level).with("have", LEVEL));
        }
        let declaration = Self::read(message)?;
        match declaration.faults().split_first() {
            None => Ok(declaration),
            Some(((resource, fault), rest)) => {
                let refusal = invalid("fault", fault).with("faults", rest.len() + 1);
                Err(match resource {
                    Some(id) => refusal.with("resource", id),
                    None => refusal,
                })
            }
        }
    }

    fn read(message: &wire::Declaration) -> Result<Self, Refusal> {
        let mode = match wire::Mode::try_from(message.mode) {
            Ok(wire::Mode::Adopt) => Mode::Adopt,
            Ok(wire::Mode::Converge) => Mode::Converge,
            Ok(wire::Mode::Unspecified) | Err(_) => return Err(invalid("fault", "`mode` is unknown")),
        };
        let acknowledged = message.acknowledged.iter().map(|id| ResourceId::parse(id)).collect::<Result<_, _>>();
        Ok(Self {
            fleet: FleetName::parse(&message.fleet).map_err(|error| invalid("fleet", error))?,
            host: HostId::parse(&message.host).map_err(|error| invalid("host", error))?,
            uid: HostUid::parse(&message.uid).map_err(|error| invalid("uid", error))?,
            position: Position { epoch: message.epoch, sequence: message.sequence },
            issued_at: message.issued_at,
            not_after: message.not_after,
            mode,
            plan_id: message.plan_id.clone(),
            previous: message.previous.clone(),
            spec_revision: message.spec_revision.clone(),
            names: message.names.clone(),
            carried_ports: message.carried_ports.clone(),
            resources: message.resources.iter().map(read_resource).collect::<Result<_, _>>()?,
            acknowledged: acknowledged.map_err(|error| invalid("acknowledged", error))?,
        })
    }

    /// The message that carries it.
    #[must_use]
    pub fn to_wire(&self) -> wire::Declaration {
        let mode = match self.mode {
            Mode::Adopt => wire::Mode::Adopt,
            Mode::Converge => wire::Mode::Converge,
        };
        wire::Declaration {
            fleet: self.fleet.to_string(),
            host: self.host.to_string(),
            uid: self.uid.to_string(),
            epoch: self.position.epoch,
            sequence: self.position.sequence,
            issued_at: self.issued_at,
            not_after: self.not_after,
            mode: mode.into(),
            plan_id: self.plan_id.clone(),
            previous: self.previous.clone(),
            spec_revision: self.spec_revision.clone(),
            names: self.names.clone(),
            carried_ports: self.carried_ports.clone(),
            resources: self.resources.iter().map(write_resource).collect(),
            level: self.level(),
            acknowledged: self.acknowledged.iter().map(ToString::to_string).collect(),
        }
    }

    /// The highest level any of its resources needs.
    #[must_use]
    pub fn level(&self) -> u32 {
        self.resources.iter().map(|resource| resource.kind().level()).max().unwrap_or(1)
    }

    /// Every fault, with the resource it belongs to where it belongs to one; in declaration order.
    #[must_use]
    pub fn faults(&self) -> Vec<(Option<ResourceId>, Fault)> {
        let of_one = |resource: &Resource| {
            let id = resource.id.clone();
            resource.faults().into_iter().map(move |fault| (Some(id.clone()), fault))
        };
        let mut faults: Vec<_> = self.resources.iter().flat_map(of_one).collect();
        if self.position.sequence == 0 || self.position.epoch == 0 {
            faults.push((None, Fault::new("sequence", "and `epoch` start at 1")));
        }
        if !self.names.is_empty() {
            faults.push((None, Fault::new("names", "holds entries, which no level yet offers")));
        }
        let confirming = self.resources.iter().filter(|resource| resource.confirms_link);
        let unconfirmed = Fault::new("confirms_link", "is set, which no level yet offers");
        faults.extend(confirming.map(|resource| (Some(resource.id.clone()), unconfirmed.clone())));
        faults.extend(validate::faults(&self.resources, &self.carried_ports));
        faults
    }
}

fn invalid(field: &'static str, problem: impl fmt::Display) -> Refusal {
    Refusal::new(Code::InvalidDeclaration).with(field, problem)
}

fn read_resource(message: &wire::Resource) -> Result<Resource, Refusal> {
    let id = ResourceId::parse(&format!("{}.{}", message.module, message.name))
        .map_err(|error| invalid("resource", error))?;
    if id.module.as_str() != message.module {
        return Err(invalid("resource", "`name` holds a dot"));
    }
    let body = message.kind.clone().ok_or_else(|| invalid("fault", "has no kind").with("resource", &id))?;
    Ok(Resource { id, confirms_link: message.confirms_link, body })
}

fn write_resource(resource: &Resource) -> wire::Resource {
    wire::Resource {
        module: resource.id.module.to_string(),
        name: resource.id.name.to_string(),
        confirms_link: resource.confirms_link,
        kind: Some(resource.body.clone()),
    }
}

#[cfg(test)]
mod tests;

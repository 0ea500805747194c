//! What has to be done, and why. Pure: what was observed comes in, a complete plan goes out, and nothing is left
//! to choose while it is carried out.

mod earlier;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use bytes::Bytes;
use replicator_protocol::change::{self, Change, Facts, reason};
use replicator_protocol::ids::ResourceId;
use replicator_protocol::resources::{Kind, Resource};
use replicator_protocol::wire::declaration::resource;
use replicator_protocol::wire::event::{Action, DeclarationRef, Failure, Reason, ReasonCode};

pub use self::earlier::translate;
use crate::ledger::projections::resources::{ALGORITHM, Applied, GIVEN_UP_WITH, Resources, facts};

/// What the machine says of one applied resource.
#[derive(Debug, Clone, PartialEq)]
pub enum Observed {
    /// It is not as it was left.
    Drifted(Vec<Drift>),
    /// It is there, does not serve, and no step would mend it.
    Failing(Failure),
    /// It could not be told. Never the same as absent.
    Unknown(Failure),
    /// The policy of the host does not allow it, or no longer does: what stands is left as it stands.
    Refused(Failure),
}

/// How a thing is no longer as it was left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Drift {
    /// In a word: `gone`, `stopped`, `altered`, `content`, `owner`, `mode`, `network`.
    Word(&'static str),
    /// The container whose network it shares is another one.
    Followed,
    /// A container still holds a file that has been replaced.
    Input(String),
    /// It is as a step left it that could not say so.
    Unfinished,
}

impl Drift {
    /// What a reason or a failure calls it.
    #[must_use]
    pub fn subject(&self) -> &str {
        match self {
            Self::Word(word) => word,
            Self::Followed => "followed",
            Self::Unfinished => "unfinished",
            Self::Input(path) => path,
        }
    }
}

/// All a plan depends on.
pub struct Situation<'a> {
    /// What is declared.
    pub resources: &'a [Resource],
    /// The facts of each, in the same order.
    pub wanted: &'a [Facts<Bytes>],
    /// What the ledger knows.
    pub ledger: &'a Resources,
    /// What the machine says, where it says something.
    pub observed: &'a BTreeMap<ResourceId, Observed>,
    /// What cut-off steps have left of resources that are not declared and of which nothing is recorded.
    pub left: &'a [Left],
    /// What failed when it was last tried, and is not to be tried again yet.
    pub put_off: &'a BTreeMap<ResourceId, Failure>,
    /// The declaration.
    pub declaration: &'a DeclarationRef,
}

/// Something of the agent's own that no record speaks of and no resource declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// Whose step it was.
    pub id: ResourceId,
    /// What stands there.
    pub kind: Kind,
    /// The path, or the runtime's name.
    pub target: String,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// Which resource.
    pub id: ResourceId,
    /// What it is, or was.
    pub kind: Kind,
    /// What is to be done.
    pub action: Action,
    /// Why.
    pub reasons: Vec<Reason>,
    /// It is not attempted, and this is what the report says.
    pub blocked: Option<Failure>,
    /// What is declared failed for this, at a price, and is not tried again: what serves on in its place is put right
    /// as it stands.
    pub given_up: Option<Failure>,
}

/// Every step: declared resources in declaration order, then the removals, last applied first. What was never recorded
/// goes last, but before the folder it lies in.
#[must_use]
pub fn plan(situation: &Situation<'_>) -> Vec<Planned> {
    let mut known: Vec<_> = situation
        .ledger
        .applied
        .iter()
        .filter_map(|(name, applied)| Some((applied, ResourceId::parse(name).ok()?, facts(&applied.record)?)))
        .filter(|(applied, id, _)| !situation.is_to_be_recognised(applied, id))
        .collect();
    // What no report has placed yet was applied last.
    let order = |applied: &Applied| applied.place.map_or((usize::MAX, applied.since), |place| (place, 0));
    known.sort_by(|(one, id, _), (other, other_id, _)| (order(one), id).cmp(&(order(other), other_id)));
    let known: Vec<_> = known.into_iter().map(|(_, id, facts)| (id, facts)).collect();
    let steps = change::plan(&known, situation.resources, situation.wanted);
    let mut bound = Bound::default();
    let mut planned = Vec::new();
    for (at, step) in steps.into_iter().enumerate() {
        let mut step = Planned {
            id: step.resource,
            kind: step.kind,
            action: step.change.action,
            reasons: step.change.reasons,
            blocked: None,
            given_up: None,
        };
        if let Some(resource) = situation.resources.get(at) {
            situation.refine(resource, &bound, &mut step);
            bound.note(resource, &step);
        }
        planned.push(step);
    }
    let declared = situation.resources.len();
    planned.retain(|step| step.action != Action::Remove || !situation.put_off.contains_key(&step.id));
    for left in situation.left.iter().filter(|left| !situation.put_off.contains_key(&left.id)) {
        let holds = |step: &Planned| {
            let folder = known.iter().find(|(id, facts)| *id == step.id && facts.kind == Kind::Directory);
            folder.is_some_and(|(_, folder)| Path::new(&left.target).starts_with(&folder.target))
        };
        let Change { action, mut reasons } = change::removal();
        reasons.push(reason(ReasonCode::Unfinished, ""));
        let before = planned.iter().skip(declared).position(holds);
        let at = before.map_or(planned.len(), |position| declared + position);
        planned.insert(
            at,
            Planned { id: left.id.clone(), kind: left.kind, action, reasons, blocked: None, given_up: None },
        );
    }
    planned
}

/// What earlier steps do to things that others are bound to.
#[derive(Default)]
struct Bound<'a> {
    /// Made again: what is bound to their id must be, too.
    renewed: BTreeSet<(Kind, &'a str)>,
    /// Containers that are started again: what shares their network then holds one that is gone.
    restarted: BTreeSet<&'a str>,
    /// Files that were changed by hand and are mended: what loads them may have loaded what stood there.
    mended: BTreeSet<String>,
}

impl<'a> Bound<'a> {
    fn note(&mut self, resource: &'a Resource, step: &Planned) {
        if step.blocked.is_some() {
            return;
        }
        let other_bytes = |reason: &Reason| {
            reason.code() == ReasonCode::Drift && ["content", "gone"].contains(&reason.subject.as_str())
        };
        if step.kind == Kind::File && step.action != Action::None && step.reasons.iter().any(other_bytes) {
            self.mended.insert(step.id.to_string());
        }
        let by_id = matches!(step.kind, Kind::Network | Kind::Container);
        if by_id && matches!(step.action, Action::Create | Action::Recreate) {
            self.renewed.insert((step.kind, resource.target()));
        } else if step.kind == Kind::Container && step.action == Action::Change {
            self.restarted.insert(resource.target());
        }
    }
}

impl Situation<'_> {
    /// A container that was recorded by another way of computing digests, which [`translate`] does not know: its record
    /// cannot be compared, so what stands is, and none is made again for the sake of its digest.
    fn is_to_be_recognised(&self, applied: &Applied, id: &ResourceId) -> bool {
        let declared = |resource: &Resource| resource.id == *id && resource.kind() == Kind::Container;
        applied.record.algorithm != ALGORITHM && self.resources.iter().any(declared)
    }

    /// Adds what only this machine can tell.
    fn refine(&self, resource: &Resource, bound: &Bound<'_>, step: &mut Planned) {
        let name = step.id.to_string();
        match self.observed.get(&step.id) {
            Some(Observed::Unknown(failure) | Observed::Refused(failure)) => {
                (step.action, step.blocked) = (Action::None, Some(failure.clone()));
                return;
            }
            Some(Observed::Failing(failure)) if step.action == Action::None => step.blocked = Some(failure.clone()),
            Some(Observed::Drifted(drift)) => drift.iter().for_each(|drift| drifted(resource, drift, step)),
            Some(Observed::Failing(_)) | None => {}
        }
        let given_up = self.ledger.given_up.get(&name).filter(|(declaration, _)| declaration == self.declaration);
        // One that is made again anyway is bound to what is there then; one that is given up is not made.
        if given_up.is_some() || !matches!(step.action, Action::Create | Action::Recreate) {
            bound_to_others(resource, bound, step);
        }
        if let Some(begun) = self.ledger.begun.get(&name) {
            // A removal that was begun and called off is nothing to go on with.
            if step.action == Action::None && begun.action() != Action::Remove {
                step.action = begun.action();
                step.blocked = None;
            }
            let unfinished = reason(ReasonCode::Unfinished, "");
            if step.action != Action::None && !step.reasons.contains(&unfinished) {
                step.reasons.push(unfinished);
            }
        }
        if let Some((_, failure)) = given_up
            && step.action != Action::None
        {
            self.give_up(resource, failure, step);
        }
        if let Some(failure) = self.put_off.get(&step.id)
            && step.action != Action::None
        {
            (step.action, step.blocked, step.given_up) = (Action::None, Some(failure.clone()), None);
        }
    }

    /// What failed is not tried again while another serves in its place. That one is looked after as it stands.
    fn give_up(&self, resource: &Resource, failure: &Failure, step: &mut Planned) {
        // Where nothing serves, trying again interrupts nothing.
        if self.serves_nothing(resource, step) || self.is_of_one_that_is_gone(failure) {
            return;
        }
        let mended = |reason: &Reason| {
            reason.code() == ReasonCode::Drift && ["stopped", "network", "altered"].contains(&reason.subject.as_str())
        };
        step.reasons.retain(mended);
        if step.kind == Kind::Container && !step.reasons.is_empty() {
            (step.action, step.given_up) = (Action::Change, Some(failure.clone()));
        } else {
            (step.action, step.blocked) = (Action::None, Some(failure.clone()));
        }
    }

    /// Whether it is gone, or the container is whose network it shared.
    fn serves_nothing(&self, resource: &Resource, step: &Planned) -> bool {
        let field = |fields: Option<&BTreeMap<String, Bytes>>| fields.and_then(|all| all.get("network_of").cloned());
        let declared = self.resources.iter().position(|other| other.id == resource.id);
        let declared = field(declared.and_then(|at| self.wanted.get(at)).map(|facts| &facts.fields));
        let known = self.ledger.applied.get(&step.id.to_string());
        // What serves may follow another one than what is declared.
        let follows_the_same = field(known.map(|known| &known.record.fields)) == declared;
        let gone = |reason: &Reason| reason.code() == ReasonCode::Drift && reason.subject == "gone";
        let bound_to_gone = |reason: &Reason| reason.code() == ReasonCode::FollowedRecreated && follows_the_same;
        step.reasons.iter().any(|reason| gone(reason) || bound_to_gone(reason))
    }

    /// Whether a file was given up with a container that does not stand any more: it is needed as it is declared.
    fn is_of_one_that_is_gone(&self, failure: &Failure) -> bool {
        let container = failure.fields.get(GIVEN_UP_WITH).and_then(|name| ResourceId::parse(name).ok());
        let observed = container.and_then(|container| self.observed.get(&container));
        matches!(observed, Some(Observed::Drifted(drift)) if drift.contains(&Drift::Word("gone")))
    }
}

/// A container is bound to a network, and to the container whose network it shares, by id: where the machine
/// says that one of them is made again, so is the container. And it is started again after the one whose network it
/// shares.
fn bound_to_others(resource: &Resource, bound: &Bound<'_>, step: &mut Planned) {
    let resource::Kind::Container(container) = &resource.body else { return };
    for file in container.reload_on.iter().filter(|file| bound.mended.contains(*file)) {
        raise(step, Action::Reload, reason(ReasonCode::DependencyChanged, file));
    }
    if bound.renewed.contains(&(Kind::Container, container.network_of.as_str())) {
        raise(step, Action::Recreate, reason(ReasonCode::FollowedRecreated, &container.network_of));
    }
    if bound.restarted.contains(container.network_of.as_str()) && step.action != Action::Change {
        raise(step, Action::Change, reason(ReasonCode::Drift, "network"));
    }
    let on_renewed = |name: &str| bound.renewed.contains(&(Kind::Network, name));
    if container.networks.iter().any(|network| on_renewed(&network.name)) {
        raise(step, Action::Recreate, reason(ReasonCode::Drift, "altered"));
    }
}

fn drifted(resource: &Resource, drift: &Drift, step: &mut Planned) {
    let container = resource.kind() == Kind::Container;
    match drift {
        Drift::Word(word) => {
            let action = match *word {
                "gone" => Action::Create,
                "altered" if container => Action::Recreate,
                _ => Action::Change,
            };
            raise(step, action, reason(ReasonCode::Drift, *word));
        }
        Drift::Followed => {
            let followed = match &resource.body {
                resource::Kind::Container(container) => container.network_of.as_str(),
                resource::Kind::File(_) | resource::Kind::Directory(_) | resource::Kind::Network(_) => "",
            };
            raise(step, Action::Recreate, reason(ReasonCode::FollowedRecreated, followed));
        }
        Drift::Input(path) => raise(step, Action::Recreate, reason(ReasonCode::InputChanged, path)),
        Drift::Unfinished => raise(step, Action::Change, reason(ReasonCode::Unfinished, "")),
    }
}

/// Adds a reason, and does the more thorough of the two things.
fn raise(step: &mut Planned, action: Action, because: Reason) {
    let weight = |action: Action| match action {
        Action::Unspecified | Action::None => 0,
        Action::Reload => 1,
        Action::Change => 2,
        Action::Create => 3,
        Action::Recreate => 4,
        Action::Remove => 5,
    };
    if weight(action) > weight(step.action) {
        step.action = action;
    }
    if !step.reasons.contains(&because) {
        step.reasons.push(because);
    }
}

#[cfg(test)]
mod tests;

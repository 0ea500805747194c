//! What failed when it was last tried. A cheap look, which comes each minute, does not try it again: the retries with
//! their growing pauses do, and after them the full look.

use std::collections::BTreeMap;

use replicator_protocol::ids::ResourceId;
use replicator_protocol::wire::event::{Action, DeclarationRef, Failure, Outcome, ResourceResult};

use crate::ledger::projections::resources::INTERRUPTED;
use crate::planner::Planned;

/// The failures, and of which declaration they are. An agent that starts knows of none, and tries everything.
#[derive(Debug, Default)]
pub(super) struct Failing {
    declaration: Option<DeclarationRef>,
    failures: BTreeMap<ResourceId, Failure>,
}

impl Failing {
    /// What is not tried again by a cheap look at `declaration`.
    pub(super) fn put_off(&self, declaration: &DeclarationRef) -> BTreeMap<ResourceId, Failure> {
        if self.declaration.as_ref() == Some(declaration) { self.failures.clone() } else { BTreeMap::new() }
    }

    /// Takes in what became of the steps of `plan`.
    pub(super) fn note(&mut self, declaration: &DeclarationRef, plan: &[Planned], results: &[Option<ResourceResult>]) {
        let mut failures = self.put_off(declaration);
        for (step, result) in plan.iter().zip(results) {
            // One that was not attempted says nothing.
            let Some(result) = result else { continue };
            let failed = matches!(result.outcome(), Outcome::Failed | Outcome::Skipped);
            match result.failure.as_ref().filter(|_| failed) {
                // Not tried, and failing as before.
                Some(_) if step.action == Action::None => {}
                Some(failure) if !is_looked_after(failure) => {
                    failures.insert(step.id.clone(), failure.clone());
                }
                Some(_) | None => _ = failures.remove(&step.id),
            }
        }
        *self = Self { declaration: Some(declaration.clone()), failures };
    }
}

/// Whether it is given up, and what serves in its place is started again whenever it stops.
fn is_looked_after(failure: &Failure) -> bool {
    failure.previous_restored && failure.fields.contains_key(INTERRUPTED)
}

#[cfg(test)]
mod tests {
    use replicator_protocol::resources::Kind;

    use super::*;

    fn step(name: &str, action: Action) -> Planned {
        let id = name.parse().unwrap();
        Planned { id, kind: Kind::Container, action, reasons: Vec::new(), blocked: None, given_up: None }
    }

    fn ended(outcome: Outcome, code: &str) -> Option<ResourceResult> {
        let failure = (!code.is_empty()).then(|| Failure { code: code.into(), ..Failure::default() });
        Some(ResourceResult { outcome: outcome.into(), failure, ..ResourceResult::default() })
    }

    fn names(put_off: &BTreeMap<ResourceId, Failure>) -> Vec<String> {
        put_off.keys().map(ToString::to_string).collect()
    }

    #[test]
    fn what_failed_is_put_off_until_it_succeeds_or_another_declaration_comes() {
        let (this, other) = (DeclarationRef::default(), DeclarationRef { sequence: 2, ..DeclarationRef::default() });
        let mut failing = Failing::default();
        let tried = ["m.a", "m.b", "m.c"].map(|name| step(name, Action::Create));
        let results =
            [ended(Outcome::Failed, "exited"), ended(Outcome::Changed, ""), ended(Outcome::Skipped, "input-failed")];
        failing.note(&this, &tried, &results);
        assert_eq!(names(&failing.put_off(&this)), ["m.a", "m.c"]);
        assert_eq!(names(&failing.put_off(&other)), [""; 0]);
        // A cheap look, which did not try them; and a full one, which did.
        let looked = ["m.a", "m.b", "m.c"].map(|name| step(name, Action::None));
        let results = [ended(Outcome::Failed, "exited"), ended(Outcome::Unchanged, ""), None];
        failing.note(&this, &looked, &results);
        assert_eq!(names(&failing.put_off(&this)), ["m.a", "m.c"]);
        failing.note(&this, &tried, &[ended(Outcome::Changed, ""), None, ended(Outcome::Failed, "exited")]);
        assert_eq!(names(&failing.put_off(&this)), ["m.c"]);
        // Found well by itself.
        failing.note(&this, &looked, &[None, None, ended(Outcome::Unchanged, "")]);
        assert_eq!(names(&failing.put_off(&this)), [""; 0]);
    }

    #[test]
    fn what_serves_in_place_of_one_that_was_given_up_is_never_put_off() {
        let this = DeclarationRef::default();
        for (interrupted, restored, put_off) in [(true, true, 0), (true, false, 1), (false, true, 1)] {
            let mut failing = Failing::default();
            let fields = interrupted.then(|| (INTERRUPTED.to_owned(), "yes".to_owned())).into_iter().collect();
            let failure = Failure { previous_restored: restored, fields, ..Failure::default() };
            let result =
                ResourceResult { outcome: Outcome::Failed.into(), failure: Some(failure), ..ResourceResult::default() };
            failing.note(&this, &[step("m.a", Action::Recreate)], &[Some(result)]);
            assert_eq!(failing.put_off(&this).len(), put_off);
        }
    }
}

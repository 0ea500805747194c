//! What has to happen to all resources of a declaration, in order.

use std::collections::{BTreeMap, BTreeSet};

use super::{Change, Facts, compare, content, inputs, removal, whole};
use crate::ids::ResourceId;
use crate::resources::{Kind, Resource};
use crate::wire::declaration::resource;
use crate::wire::event::Action;

/// What has to happen to one resource.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Which.
    pub resource: ResourceId,
    /// What it is, or was.
    pub kind: Kind,
    /// What is to be done, and why.
    pub change: Change,
}

/// The facts of every resource, in declaration order: its fields, the content of each declared file it takes in,
/// and each resource it depends on.
///
/// What a container takes in from a path no resource declares is for the host to add, which can read it.
#[must_use]
pub fn wanted<D>(resources: &[Resource], digest: impl Fn(&[u8]) -> D) -> Vec<Facts<D>> {
    let files: BTreeMap<&str, &Resource> =
        resources.iter().filter(|other| other.kind() == Kind::File).map(|file| (file.target(), file)).collect();
    let by_name: BTreeMap<String, &Resource> = resources.iter().map(|other| (other.id.to_string(), other)).collect();
    let digest = &digest;
    resources
        .iter()
        .map(|resource| {
            let mut facts = Facts::of(resource, digest);
            let taken_in = inputs(resource).into_iter();
            facts.inputs =
                taken_in.filter_map(|path| Some((path.to_owned(), digest(&content(files.get(path)?))))).collect();
            if let resource::Kind::Container(container) = &resource.body {
                let all = |names: &[String]| -> BTreeMap<String, D> {
                    let named = names.iter().filter_map(|name| Some((name.clone(), *by_name.get(name)?)));
                    named.map(|(name, other)| (name, digest(&whole(other)))).collect()
                };
                facts.restart_on = all(&container.restart_on);
                facts.reload_on = all(&container.reload_on);
            }
            facts
        })
        .collect()
}

/// Every step that leads from `known` to `wanted`, which are the facts of `resources`: one for each declared
/// resource in declaration order, then the removals, last applied first.
///
/// `known` is in the order it was applied.
#[must_use]
pub fn plan<D: PartialEq>(known: &[(ResourceId, Facts<D>)], resources: &[Resource], wanted: &[Facts<D>]) -> Vec<Step> {
    let before: BTreeMap<&ResourceId, &Facts<D>> = known.iter().map(|(id, facts)| (id, facts)).collect();
    let mut renewed = BTreeSet::new();
    let mut steps = Vec::new();
    for (resource, facts) in resources.iter().zip(wanted) {
        let followed = match &resource.body {
            resource::Kind::Container(container) if renewed.contains(container.network_of.as_str()) => {
                Some(container.network_of.as_str())
            }
            resource::Kind::Container(_)
            | resource::Kind::File(_)
            | resource::Kind::Directory(_)
            | resource::Kind::Network(_) => None,
        };
        let change = compare(before.get(&resource.id).copied(), facts, followed);
        if resource.kind() == Kind::Container && matches!(change.action, Action::Create | Action::Recreate) {
            renewed.insert(resource.target());
        }
        steps.push(Step { resource: resource.id.clone(), kind: resource.kind(), change });
    }
    let declared: BTreeSet<&ResourceId> = resources.iter().map(|resource| &resource.id).collect();
    let orphans = known.iter().rev().filter(|(id, _)| !declared.contains(id));
    steps.extend(orphans.map(|(id, facts)| Step { resource: id.clone(), kind: facts.kind, change: removal() }));
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::reason;
    use crate::wire::declaration::{Container, File, Mount, file::Body, mount::Source};
    use crate::wire::event::ReasonCode;

    fn file(content: &str) -> Resource {
        let body = Some(Body::Content(content.into()));
        let file = File { path: "/etc/web.conf".into(), body, ..File::default() };
        Resource { id: id("web.conf"), confirms_link: false, body: resource::Kind::File(file) }
    }

    fn container(name: &str, edit: impl FnOnce(&mut Container)) -> Resource {
        let mut container = Container { name: name.into(), ..Container::default() };
        edit(&mut container);
        Resource { id: id(&format!("web.{name}")), confirms_link: false, body: resource::Kind::Container(container) }
    }

    fn id(text: &str) -> ResourceId {
        ResourceId::parse(text).unwrap()
    }

    fn facts(resources: &[Resource]) -> Vec<Facts<Vec<u8>>> {
        wanted(resources, <[u8]>::to_vec)
    }

    fn steps(before: &[Resource], now: &[Resource]) -> Vec<(String, Action, Vec<crate::wire::event::Reason>)> {
        let known: Vec<_> = before.iter().map(|one| one.id.clone()).zip(facts(before)).collect();
        let steps = plan(&known, now, &facts(now)).into_iter();
        steps.map(|step| (step.resource.to_string(), step.change.action, step.change.reasons)).collect()
    }

    #[test]
    fn changed_file_recreates_what_takes_it_in_and_what_follows_that() {
        let all = |content| {
            let mount = Mount { source: Some(Source::Bind("/etc/web.conf".into())), ..Mount::default() };
            [
                file(content),
                container("net", |c| c.mounts = vec![mount]),
                container("app", |c| c.network_of = "net".into()),
            ]
        };
        let unchanged = steps(&all("one"), &all("one"));
        assert!(unchanged.iter().all(|(_, action, reasons)| *action == Action::None && reasons.is_empty()));
        assert_eq!(
            steps(&all("one"), &all("two")),
            [
                ("web.conf".into(), Action::Change, vec![reason(ReasonCode::FieldChanged, "content")]),
                ("web.net".into(), Action::Recreate, vec![reason(ReasonCode::InputChanged, "/etc/web.conf")]),
                ("web.app".into(), Action::Recreate, vec![reason(ReasonCode::FollowedRecreated, "net")]),
            ]
        );
    }

    #[test]
    fn changed_dependency_reloads_or_recreates() {
        let on = |content, restart: bool| {
            let names = vec!["web.conf".to_owned()];
            let edit = move |c: &mut Container| if restart { c.restart_on = names } else { c.reload_on = names };
            [file(content), container("app", edit)]
        };
        let because = vec![reason(ReasonCode::DependencyChanged, "web.conf")];
        let restarted = steps(&on("one", true), &on("two", true));
        assert_eq!(restarted[1], ("web.app".into(), Action::Recreate, because.clone()));
        let reloaded = steps(&on("one", false), &on("two", false));
        assert_eq!(reloaded[1], ("web.app".into(), Action::Reload, because));
    }

    #[test]
    fn what_is_no_longer_declared_is_removed_last_applied_first() {
        let before = [file("x"), container("a", |_| ()), container("b", |_| ())];
        let gone = steps(&before, &[]);
        let names: Vec<_> = gone.iter().map(|(name, action, _)| (name.as_str(), *action)).collect();
        assert_eq!(names, [("web.b", Action::Remove), ("web.a", Action::Remove), ("web.conf", Action::Remove)]);
    }
}

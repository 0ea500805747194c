//! How a container is no longer as it was left, told by what is declared of it, as far as that has not changed since.

use std::path::Path;

use replicator_protocol::change;
use replicator_protocol::wire::declaration::{Container, mount::Source, resource::Kind};
use replicator_protocol::wire::event::{Failure, Record};

use super::{Containers, runtime};
use crate::host::docker::Seen;
use crate::host::files::{self, FileType};
use crate::planner::Drift;

/// What is declared of a container in the same words as when it was made. Of any other field nobody knows any more
/// what it was.
pub(super) struct Unchanged<'d> {
    declared: &'d Container,
    fields: Vec<&'static str>,
}

impl Unchanged<'_> {
    fn has(&self, field: &str) -> bool {
        self.fields.contains(&field)
    }

    /// Whether what the runtime can alter on a container that exists has been altered.
    pub(super) fn is_altered(&self, seen: &Seen) -> bool {
        self.lost_limits(seen) || !self.left_networks(seen).is_empty() || !self.strange_networks(seen).is_empty()
    }

    /// Whether a limit is another one.
    pub(super) fn lost_limits(&self, seen: &Seen) -> bool {
        let (memory, cpus, pids) = limits(self.declared);
        (self.has("memory") && memory != seen.limits.0)
            || (self.has("milli_cpus") && cpus != seen.limits.1)
            || (self.has("pids") && pids != seen.limits.2)
    }

    /// The networks it is on no more, by their place in the declaration.
    pub(super) fn left_networks(&self, seen: &Seen) -> Vec<usize> {
        let all = self.declared.networks.iter().enumerate().filter(|_| self.has("networks"));
        all.filter(|(_, network)| !seen.networks.contains_key(&network.name)).map(|(at, _)| at).collect()
    }

    /// The networks it was joined to by somebody else, by name.
    pub(super) fn strange_networks(&self, seen: &Seen) -> Vec<String> {
        // One that asks for none is on one of the runtime's own.
        if !self.has("networks") || self.declared.networks.is_empty() && seen.networks.len() <= 1 {
            return Vec::new();
        }
        let asked_for = |name: &&String| self.declared.networks.iter().any(|network| network.name == **name);
        seen.networks.keys().filter(|name| !asked_for(name)).cloned().collect()
    }

    /// Files bound into a running container whose place another file has taken since: it reads the old one.
    pub(super) fn replaced_inputs(&self, seen: &Seen) -> Vec<String> {
        let bound = self.declared.mounts.iter().filter(|_| self.has("mounts"));
        let bound = bound.filter_map(|mount| match &mount.source {
            Some(Source::Bind(source)) => Some((source, &mount.target)),
            Some(Source::Volume(_) | Source::Tmpfs(_)) | None => None,
        });
        bound
            .filter(|(source, target)| {
                let inside = format!("/proc/{}/root{target}", seen.pid);
                // What cannot be looked into tells nothing.
                let (Ok(Some(here)), Ok(Some(there))) =
                    (files::look(Path::new(source)), files::look(Path::new(&inside)))
                else {
                    return false;
                };
                here.file_type == FileType::File && there.file_type == FileType::File && here.inode != there.inode
            })
            .map(|(source, _)| source.clone())
            .collect()
    }
}

impl Containers<'_> {
    /// What is declared as it was when `record` was read back.
    pub(super) fn unchanged<'d>(&self, declared: &'d Container, record: &Record) -> Unchanged<'d> {
        let now = change::fields_of(&Kind::Container(declared.clone()));
        let same = |field: &&'static str| {
            let now = now.get(*field).map(|value| self.tools.declared(value));
            now.as_ref() == record.fields.get(*field)
        };
        let fields = ["memory", "milli_cpus", "pids", "networks", "network_of", "mounts"];
        Unchanged { declared, fields: fields.into_iter().filter(same).collect() }
    }

    /// How a container no longer shares the network of the one it follows, where that one is there.
    pub(in crate::appliers) async fn lost_network(
        &self,
        declared: &Container,
        record: &Record,
        seen: &Seen,
    ) -> Result<Option<Drift>, Failure> {
        let unchanged = self.unchanged(declared, record);
        if unchanged.has("network_of") { self.lost(declared, seen).await } else { Ok(None) }
    }

    /// The same of one that was made to follow the one it is declared to follow.
    pub(super) async fn lost(&self, declared: &Container, seen: &Seen) -> Result<Option<Drift>, Failure> {
        if declared.network_of.is_empty() {
            return Ok(None);
        }
        let followed = self.tools.docker.container(&declared.network_of).await.map_err(runtime)?;
        Ok(match followed {
            Some(followed) if followed.id != seen.followed => Some(Drift::Followed),
            // Started before the container whose network it shares, it holds a network that is gone.
            Some(followed) if seen.started_before(&followed) => Some(Drift::Word("network")),
            Some(_) | None => None,
        })
    }

    /// The field by which a container is bound to what is gone: the container whose network it shares, or a network.
    /// Another one may have the name by now, but not the id.
    pub(super) async fn bound_to_gone(
        &self,
        declared: &Container,
        seen: &Seen,
    ) -> Result<Option<&'static str>, Failure> {
        if self.lost(declared, seen).await? == Some(Drift::Followed) {
            return Ok(Some("network_of"));
        }
        for network in &declared.networks {
            let standing = self.tools.docker.networks(&network.name).await.map_err(runtime)?;
            // One that was never started may say no id.
            let is_there = |id: &String| id.is_empty() || standing.iter().any(|standing| standing.id == *id);
            if !seen.networks.get(&network.name).is_some_and(is_there) {
                return Ok(Some("networks"));
            }
        }
        Ok(None)
    }
}

/// Memory in bytes, thousandths of a processor, number of processes; 0 where there is none.
pub(super) fn limits(declared: &Container) -> (i64, i64, i64) {
    let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    (declared.memory.map_or(0, signed), declared.milli_cpus.map_or(0, signed), declared.pids.map_or(0, i64::from))
}

#[cfg(test)]
mod tests {
    use replicator_protocol::wire::declaration::NetworkAttachment;

    use super::*;
    use crate::host::docker::Condition;

    fn on(networks: &[&str]) -> Vec<NetworkAttachment> {
        let on = |name: &&str| NetworkAttachment { name: (*name).to_owned(), ..NetworkAttachment::default() };
        networks.iter().map(on).collect()
    }

    fn seen(limits: (i64, i64, i64), networks: &[&str]) -> Seen {
        Seen {
            id: "1".into(),
            name: "app".into(),
            labels: [].into(),
            condition: Condition::Running,
            exit_code: 0,
            restarts: 0,
            started_at: String::new(),
            image_id: String::new(),
            followed: String::new(),
            pid: 0,
            networks: networks.iter().map(|name| ((*name).to_owned(), "id".to_owned())).collect(),
            addresses: [].into(),
            limits,
            stop_timeout: None,
            check_within: None,
        }
    }

    #[test]
    fn altered_is_told_by_what_is_declared_as_it_was_and_by_nothing_else() {
        let declared = Container { memory: Some(64), pids: Some(3), networks: on(&["a", "b"]), ..Container::default() };
        let altered = |fields: &[&'static str], seen: &Seen| {
            Unchanged { declared: &declared, fields: fields.to_vec() }.is_altered(seen)
        };
        let all = ["memory", "milli_cpus", "pids", "networks"];
        assert!(!altered(&all, &seen((64, 0, 3), &["a", "b"])));
        assert!(altered(&all, &seen((32, 0, 3), &["a", "b"])) && altered(&all, &seen((64, 5, 3), &["a", "b"])));
        assert!(altered(&all, &seen((64, 0, 0), &["a", "b"])));
        assert!(altered(&all, &seen((64, 0, 3), &["a"])) && altered(&all, &seen((64, 0, 3), &["a", "b", "c"])));
        assert!(!altered(&all[1..3], &seen((32, 0, 3), &["a"])), "it was made with another limit, elsewhere");
        let alone = Container::default();
        let alone = Unchanged { declared: &alone, fields: vec!["networks"] };
        assert!(!alone.is_altered(&seen((0, 0, 0), &["bridge"])));
    }
}

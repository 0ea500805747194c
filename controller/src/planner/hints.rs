//! What to do about a resource that failed, by the stable code the host gave.

use replicator_protocol::wire::event::{ApplyReported, Failure, Outcome};

/// What can be done, by code. A code of a later agent is none of these.
const HINTS: &[(&str, &str)] = &[
    ("file", "see that the disk of the host has room and is writable: `df -h`"),
    ("parent-missing", "declare the folder the file lies in, or make it"),
    ("unsafe-parent", "make every folder on the way root's own, and no link"),
    ("wrong-type", "move what stands at that path away"),
    ("unknown-owner", "make the login or group on the host, or name another"),
    ("cannot-open", "enrol the host again, so that its secrets are sealed for the key it holds"),
    ("read-back", "find out what else writes there, then converge again"),
    ("runtime-unreachable", "start the container runtime of the host (`systemctl start docker`), then converge again"),
    ("runtime-timed-out", "see what keeps the container runtime of the host busy, then converge again"),
    ("runtime-refused", "see what the container runtime says above, and its log on the host"),
    ("image-missing", "build or load the image on the host; `docker image ls` shows what there is"),
    ("bind-missing", "make the path on the host that is to be bound, or declare it"),
    (
        "name-taken",
        "make what has that name equal in what `differs` says, or remove or rename it: it is not ours to replace",
    ),
    ("duplicate-network", "remove one of the two networks of that name"),
    ("subnet-taken", "remove the network that takes the addresses: `docker network ls`"),
    ("exited", "see its last words above: the program itself ends"),
    ("restarting", "see its last words above: the program itself ends, again and again"),
    ("unhealthy", "see its last words above, and what its health check asks"),
    ("probe-failed", "see whether the program listens on the port that is declared"),
    ("input-failed", "see to what failed before it"),
    (
        "input-unreadable",
        "see why the host cannot read that file: its disk, its size (at most 64 MiB), or what it lies on",
    ),
    ("followed-missing", "see to what failed before it"),
    ("replacement-failed", "see to the container that takes the file in"),
    ("not-acknowledged", "agree to the loss on the host, or take the change back"),
    ("removal-waits", "see to the resource it names; what waits is removed when that is done"),
    ("not-recorded", "see that the disk of the host has room: nothing is changed there without a record"),
    ("policy", "widen `policy.toml` on the host, or take the change back"),
];
/// Codes of what failed because something before it did.
const CONSEQUENCES: &[&str] = &["input-failed", "followed-missing", "replacement-failed"];
/// How runtimes say that a port is somebody else's.
const TAKEN: &[&str] = &["address already in use", "port is already allocated"];

/// One line that names the next action for a failure of this code; none where the code is not known here.
#[must_use]
pub fn hint(failure: &Failure) -> Option<&'static str> {
    if TAKEN.iter().any(|words| failure.output.contains(words)) {
        return Some("free the port: `ss -ltnp` shows who listens on it");
    }
    HINTS.iter().find(|(code, _)| *code == failure.code).map(|(_, hint)| *hint)
}

/// The resource to begin with: the first that failed by itself, else the first that failed at all.
pub(super) fn first(report: &ApplyReported) -> Option<(&str, &Failure)> {
    let failed = || report.results.iter().filter(|result| result.outcome == i32::from(Outcome::Failed));
    let all = || failed().filter_map(|result| Some((result.resource.as_str(), result.failure.as_ref()?)));
    all().find(|(_, failure)| !CONSEQUENCES.contains(&failure.code.as_str())).or_else(|| all().next())
}

#[cfg(test)]
mod tests {
    use replicator_protocol::wire::event::ResourceResult;

    use super::*;

    fn failed(resource: &str, code: &str) -> ResourceResult {
        let failure = Some(Failure { code: code.into(), ..Failure::default() });
        ResourceResult { resource: resource.into(), outcome: Outcome::Failed.into(), failure, ..Default::default() }
    }

    #[test]
    fn what_failed_by_itself_comes_before_what_failed_with_it() {
        let results = vec![failed("web.file", "replacement-failed"), failed("web.app", "exited")];
        let mut report = ApplyReported { results, ..ApplyReported::default() };
        assert_eq!(first(&report).unwrap().0, "web.app");
        report.results.pop();
        assert_eq!(first(&report).unwrap().0, "web.file");
    }

    #[test]
    fn port_of_somebody_else_is_told_as_such() {
        let output = "listen tcp4 127.0.0.1:8480: bind: address already in use".into();
        let taken = Failure { code: "runtime-refused".into(), output, ..Failure::default() };
        assert!(hint(&taken).unwrap().starts_with("free the port"));
        assert_eq!(hint(&Failure { code: "of-tomorrow".into(), ..Failure::default() }), None);
    }
}

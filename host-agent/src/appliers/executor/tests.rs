//! Files and folders on a real file system with a real ledger; there is no container runtime here.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use replicator_protocol::declaration::Declaration;
use replicator_protocol::ids::{Generation, SecretName};
use replicator_protocol::sealed_box::{Consumer, Recipient, seal};
use replicator_protocol::secret::SecretBytes;
use replicator_protocol::wire::declaration::{self as wire, file::Body as Content};

use super::*;
use crate::clock::SystemClock;
use crate::config::Layout;
use crate::daemon::Applier as _;
use crate::host::docker::Docker;
use crate::keys::Opener;
use crate::keys::digest_key::DigestKey;
use crate::keys::host_key::HostKeys;
use crate::ledger::{Ledger, SharedLedger};
use crate::testing;

mod after_loss;
mod faults;
mod moves;

struct Bench {
    folder: tempfile::TempDir,
    executor: Executor,
    keys: Arc<HostKeys>,
    sequence: u64,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("machine")).unwrap();
        let at = folder.path().join("keys");
        fs::create_dir(&at).unwrap();
        let keys = Arc::new(HostKeys::make(&at).unwrap());
        let executor = Self::executor(folder.path(), &keys);
        Self { folder, executor, keys, sequence: 0 }
    }

    fn executor(folder: &Path, keys: &Arc<HostKeys>) -> Executor {
        let me = testing::membership();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let ledger = Ledger::open(folder, &me.uid, Arc::clone(&clock)).unwrap();
        let recipient = Recipient { fleet: me.fleet.clone(), host: me.uid.clone() };
        let tools = Tools {
            host: me.uid,
            fleet: me.fleet,
            layout: Layout::new(folder),
            digest_key: Arc::new(DigestKey::from_bytes([3; 32])),
            opener: Arc::new(Opener::new(recipient, Arc::clone(keys))),
            docker: Docker::new("/nonexistent/docker.sock"),
            ledger: Arc::new(SharedLedger::new(ledger)),
        };
        Executor::new(tools, clock)
    }

    /// The agent died and was started again.
    fn restart(&mut self) {
        let keys = Arc::clone(&self.keys);
        let Self { folder, executor, .. } = self;
        // The old one lets go of the ledger first.
        let parked = Bench::executor(tempfile::tempdir().unwrap().path(), &keys);
        drop(std::mem::replace(executor, parked));
        *executor = Bench::executor(folder.path(), &keys);
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("machine").join(name)
    }

    fn file(&self, name: &str, content: &str) -> wire::File {
        let path = self.path(name).to_str().unwrap().to_owned();
        wire::File { path, body: Some(Content::Content(content.into())), ..wire::File::default() }
    }

    fn sealed(&self, name: &str, value: &str, generation: u64) -> wire::File {
        let me = testing::membership();
        let consumer = Consumer { resource: format!("m.{name}").parse().unwrap(), field: "sealed".into() };
        let sealed = seal(
            self.keys.sealing().public(),
            &Recipient { fleet: me.fleet, host: me.uid },
            (&SecretName::parse("token").unwrap(), Generation(generation)),
            &consumer,
            &SecretBytes::new(value.as_bytes().to_vec()),
        );
        wire::File { body: Some(Content::Sealed(sealed.unwrap())), ..self.file(name, "") }
    }

    fn directory(&self, name: &str, mode: u32) -> wire::resource::Kind {
        let path = self.path(name).to_str().unwrap().to_owned();
        wire::resource::Kind::Directory(wire::Directory { path, mode: Some(mode), ..wire::Directory::default() })
    }

    fn in_force(&mut self, files: &[wire::File]) -> InForce {
        self.in_force_of(files.iter().cloned().map(wire::resource::Kind::File))
    }

    fn in_force_of(&mut self, kinds: impl IntoIterator<Item = wire::resource::Kind>) -> InForce {
        self.sequence += 1;
        let named = |kind: wire::resource::Kind| {
            let path = match &kind {
                wire::resource::Kind::File(file) => &file.path,
                wire::resource::Kind::Directory(directory) => &directory.path,
                wire::resource::Kind::Network(_) | wire::resource::Kind::Container(_) => panic!("it has no path"),
            };
            let name = Path::new(path).file_name().unwrap().to_str().unwrap().to_owned();
            wire::Resource { module: "m".into(), name, confirms_link: false, kind: Some(kind) }
        };
        let resources = kinds.into_iter().map(named);
        let message = wire::Declaration { resources: resources.collect(), ..testing::declaration(1, self.sequence) };
        let declaration = Declaration::from_wire(&message).unwrap();
        let reference = replicator_protocol::wire::event::DeclarationRef {
            epoch: 1,
            sequence: self.sequence,
            hash: vec![u8::try_from(self.sequence).unwrap()].into(),
        };
        InForce { declaration, reference, envelope: bytes::Bytes::new() }
    }

    /// The same under names of their own.
    fn in_force_as(&mut self, named: impl IntoIterator<Item = (&'static str, wire::resource::Kind)>) -> InForce {
        let (names, kinds): (Vec<_>, Vec<_>) = named.into_iter().unzip();
        let mut in_force = self.in_force_of(kinds);
        for (resource, name) in in_force.declaration.resources.iter_mut().zip(names) {
            resource.id = format!("m.{name}").parse().unwrap();
        }
        in_force
    }

    async fn apply(&mut self, files: &[wire::File]) -> ApplyReported {
        let in_force = self.in_force(files);
        self.executor.apply(&in_force, Trigger::Declaration, &|| false).await.unwrap()
    }

    async fn apply_all(&mut self, kinds: Vec<wire::resource::Kind>) -> ApplyReported {
        let in_force = self.in_force_of(kinds);
        self.executor.apply(&in_force, Trigger::Declaration, &|| false).await.unwrap()
    }

    fn entries(&self) -> u64 {
        self.executor.tools.ledger.head().number
    }
}

fn outcomes(report: &ApplyReported) -> Vec<Outcome> {
    report.results.iter().map(ResourceResult::outcome).collect()
}

fn code(report: &ApplyReported, at: usize) -> &str {
    &report.results[at].failure.as_ref().unwrap().code
}

#[tokio::test]
async fn file_is_written_with_its_mode_and_twice_is_once() {
    let mut bench = Bench::new();
    let file = wire::File { mode: Some(0o640), ..bench.file("a", "one") };
    assert_eq!(outcomes(&bench.apply(std::slice::from_ref(&file)).await), [Outcome::Changed]);
    let written = fs::metadata(bench.path("a")).unwrap();
    assert_eq!((fs::read(bench.path("a")).unwrap(), written.mode() & 0o7777), (b"one".to_vec(), 0o640));
    let before = bench.entries();
    assert_eq!(outcomes(&bench.apply(&[file]).await), [Outcome::Unchanged]);
    assert_eq!(bench.entries(), before + 1, "only the report");
    assert_eq!(fs::metadata(bench.path("a")).unwrap().ino(), written.ino(), "not written again");
}

#[tokio::test]
async fn what_failed_is_left_to_the_retries_by_cheap_looks_and_told_once() {
    let mut bench = Bench::new();
    let files = [bench.file("folder/a", "one"), bench.file("b", "one")];
    let in_force = bench.in_force(&files);
    let report = bench.executor.apply(&in_force, Trigger::Declaration, &|| false).await.unwrap();
    assert_eq!((outcomes(&report), code(&report, 0)), (vec![Outcome::Failed, Outcome::Changed], "parent-missing"));
    let told = bench.entries();
    fs::create_dir(bench.path("folder")).unwrap();
    for _ in 0..2 {
        let look = bench.executor.look(&in_force, Depth::Cheap, &|| false).await.unwrap().unwrap();
        assert_eq!((code(&look, 0), look.results[0].action()), ("parent-missing", Action::None));
        assert_eq!(bench.entries(), told, "nothing was tried, and nothing is told");
    }
    // What else is not as declared is mended all the same.
    fs::remove_file(bench.path("b")).unwrap();
    let look = bench.executor.look(&in_force, Depth::Cheap, &|| false).await.unwrap().unwrap();
    assert_eq!(outcomes(&look), [Outcome::Failed, Outcome::Changed]);
    let look = bench.executor.look(&in_force, Depth::Full, &|| false).await.unwrap().unwrap();
    assert_eq!(outcomes(&look), [Outcome::Changed, Outcome::Unchanged]);
    assert_eq!(bench.executor.look(&in_force, Depth::Cheap, &|| false).await.unwrap(), None);
}

#[tokio::test]
async fn what_the_policy_no_longer_allows_is_left_as_it_stands_and_told() {
    let mut bench = Bench::new();
    let layout = Layout::new(bench.folder.path());
    layout.make_folders().unwrap();
    // The agent's own folder is the one no declaration may write in by default.
    let path = layout.state().join("theirs").to_str().unwrap().to_owned();
    let line = format!("allow_paths = ['{path}']");
    fs::write(layout.policy(), &line).unwrap();
    let files = [wire::File { path: path.clone(), ..bench.file("theirs", "one") }, bench.file("ours", "one")];
    let in_force = bench.in_force(&files);
    let look =
        async |bench: &Bench| bench.executor.look(&in_force, crate::daemon::Depth::Full, &|| false).await.unwrap();
    let report = bench.executor.apply(&in_force, Trigger::Declaration, &|| false).await.unwrap();
    assert_eq!(outcomes(&report), [Outcome::Changed; 2]);
    for (text, more) in [("", "line"), ("allow_path = 1", "error")] {
        fs::write(layout.policy(), text).unwrap();
        fs::write(&path, "drifted").unwrap();
        fs::write(bench.path("ours"), "drifted").unwrap();
        let report = look(&bench).await.unwrap();
        assert_eq!(outcomes(&report), [Outcome::Failed, Outcome::Changed]);
        let failure = report.results[0].failure.as_ref().unwrap();
        assert_eq!((failure.code.as_str(), failure.fields["refused"].as_str()), ("policy", "forbidden-path"));
        assert!(failure.fields.contains_key(more), "{failure:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "drifted", "left as it stands");
        let told = bench.entries();
        look(&bench).await;
        assert_eq!(bench.entries(), told, "told once");
    }
    fs::write(layout.policy(), line).unwrap();
    assert_eq!(outcomes(&look(&bench).await.unwrap()), [Outcome::Changed, Outcome::Unchanged]);
    assert_eq!(fs::read_to_string(&path).unwrap(), "one");
}

#[tokio::test]
async fn link_that_was_turned_since_is_not_followed_where_the_policy_forbids_to() {
    let mut bench = Bench::new();
    let layout = Layout::new(bench.folder.path());
    layout.make_folders().unwrap();
    let folder = bench.path("folder");
    fs::create_dir(&folder).unwrap();
    let file = wire::File { path: folder.join("file").to_str().unwrap().into(), ..bench.file("file", "one") };
    let in_force = bench.in_force(&[file]);
    // Turned after the plan was made, at the last safe point before the step.
    let turn = || {
        fs::remove_dir(&folder).unwrap();
        std::os::unix::fs::symlink(layout.state(), &folder).unwrap();
        false
    };
    for turned in [&turn as NewerWaiting<'_>, &|| false] {
        let report = bench.executor.apply(&in_force, Trigger::Declaration, turned).await.unwrap();
        assert_eq!(code(&report, 0), "policy", "{report:?}");
        assert!(!layout.state().join("file").exists());
    }
    fs::remove_file(&folder).unwrap();
    fs::create_dir(&folder).unwrap();
    let report = bench.executor.apply(&in_force, Trigger::Declaration, &|| false).await.unwrap();
    assert_eq!(outcomes(&report), [Outcome::Changed], "the control");
}

#[tokio::test]
async fn sealed_file_is_opened_for_the_write_and_a_new_generation_says_which_secret() {
    let mut bench = Bench::new();
    let first = bench.sealed("token", "hunter22", 1);
    bench.apply(&[first]).await;
    assert_eq!(fs::read(bench.path("token")).unwrap(), b"hunter22");
    assert_eq!(fs::metadata(bench.path("token")).unwrap().mode() & 0o7777, 0o600);
    let again = bench.sealed("token", "hunter22", 1);
    assert_eq!(outcomes(&bench.apply(&[again]).await), [Outcome::Unchanged], "sealed anew is no change");
    let second = bench.sealed("token", "hunter23", 2);
    let report = bench.apply(&[second]).await;
    assert_eq!(fs::read(bench.path("token")).unwrap(), b"hunter23");
    assert_eq!(report.results[0].reasons[0].code(), ReasonCode::FieldChanged);
    let everything = bench.executor.tools.ledger.read_after(0, 1000).unwrap();
    let leaks = everything.iter().any(|entry| entry.payload.windows(6).any(|window| window == b"hunter"));
    assert!(!leaks, "no secret is in the ledger");
}

#[tokio::test]
async fn secret_sealed_for_another_place_is_refused_and_leaves_the_file() {
    let mut bench = Bench::new();
    let sealed = bench.sealed("one", "hunter22", 1);
    let elsewhere = wire::File { path: bench.file("two", "").path, ..sealed };
    let report = bench.apply(&[elsewhere]).await;
    assert_eq!(code(&report, 0), "cannot-open");
    assert!(!bench.path("two").exists());
}

#[tokio::test]
async fn found_file_is_kept_and_comes_back() {
    let mut bench = Bench::new();
    fs::write(bench.path("a"), "theirs").unwrap();
    fs::set_permissions(bench.path("a"), fs::Permissions::from_mode(0o604)).unwrap();
    let ours = bench.file("a", "ours");
    bench.apply(&[ours]).await;
    let newer = bench.file("a", "ours, newer");
    bench.apply(&[newer]).await;
    let report = bench.apply(&[]).await;
    assert_eq!(
        (outcomes(&report), report.results[0].note.as_str()),
        (vec![Outcome::Removed], "what was here first is back")
    );
    assert_eq!(fs::read(bench.path("a")).unwrap(), b"theirs");
    assert_eq!(fs::metadata(bench.path("a")).unwrap().mode() & 0o7777, 0o604);
}

#[tokio::test]
async fn file_changed_by_hand_is_put_right_and_is_kept_when_undeclared() {
    let mut bench = Bench::new();
    let file = bench.file("a", "ours");
    let in_force = bench.in_force(std::slice::from_ref(&file));
    bench.executor.apply(&in_force, Trigger::Declaration, &|| false).await.unwrap();
    fs::write(bench.path("a"), "by hand").unwrap();
    let look = bench.executor.look(&in_force, Depth::Full, &|| false).await.unwrap().unwrap();
    assert_eq!((look.results[0].outcome(), look.results[0].reasons[0].subject.as_str()), (Outcome::Changed, "content"));
    assert_eq!(fs::read(bench.path("a")).unwrap(), b"ours");
    fs::write(bench.path("a"), "by hand again").unwrap();
    assert_eq!(outcomes(&bench.apply(&[]).await), [Outcome::Kept]);
    assert_eq!(fs::read(bench.path("a")).unwrap(), b"by hand again");
}

#[tokio::test]
async fn look_that_finds_nothing_appends_nothing() {
    let mut bench = Bench::new();
    let file = bench.file("a", "x");
    let in_force = bench.in_force(&[file]);
    bench.executor.apply(&in_force, Trigger::Declaration, &|| false).await.unwrap();
    let before = bench.entries();
    for depth in [Depth::Cheap, Depth::Full] {
        assert_eq!(bench.executor.look(&in_force, depth, &|| false).await.unwrap(), None);
    }
    assert_eq!(bench.entries(), before);
}

#[tokio::test]
async fn link_in_the_place_of_a_file_is_refused_and_others_go_on() {
    let mut bench = Bench::new();
    std::os::unix::fs::symlink("/etc/passwd", bench.path("a")).unwrap();
    let files = [bench.file("a", "x"), bench.file("b", "y"), bench.file("none/c", "z")];
    let report = bench.apply(&files).await;
    assert_eq!(outcomes(&report), [Outcome::Failed, Outcome::Changed, Outcome::Failed]);
    assert_eq!((code(&report, 0), code(&report, 2)), ("wrong-type", "parent-missing"));
}

#[tokio::test]
async fn seed_is_written_once_and_left_alone() {
    let mut bench = Bench::new();
    let seed = |bench: &Bench, content: &str| wire::File { create_once: true, ..bench.file("a", content) };
    let first = seed(&bench, "seed");
    bench.apply(&[first]).await;
    fs::write(bench.path("a"), "grown").unwrap();
    let second = seed(&bench, "another seed");
    assert_eq!(outcomes(&bench.apply(&[second]).await), [Outcome::Unchanged]);
    assert_eq!(fs::read(bench.path("a")).unwrap(), b"grown");
}

#[tokio::test]
async fn moved_file_leaves_no_copy_behind() {
    let mut bench = Bench::new();
    let here = bench.file("a", "x");
    bench.apply(&[here]).await;
    // The resource keeps its name and gets another path.
    let mut in_force = bench.in_force(&[bench.file("a", "x")]);
    let there = bench.path("b").to_str().unwrap().to_owned();
    if let wire::resource::Kind::File(file) = &mut in_force.declaration.resources[0].body {
        file.path = there;
    }
    bench.executor.apply(&in_force, Trigger::Declaration, &|| false).await.unwrap();
    assert!(bench.path("b").exists() && !bench.path("a").exists());
}

#[tokio::test]
async fn something_newer_ends_the_walk_between_resources() {
    let mut bench = Bench::new();
    let files = [bench.file("a", "x"), bench.file("b", "y")];
    let in_force = bench.in_force(&files);
    let made = bench.path("a");
    let newer = move || made.exists();
    let report = bench.executor.apply(&in_force, Trigger::Declaration, &newer).await.unwrap();
    assert_eq!((report.complete, report.not_attempted, outcomes(&report)), (false, 1, vec![Outcome::Changed]));
}

fn container(mount: Option<&str>, environment: Option<&str>) -> replicator_protocol::resources::Resource {
    let bound = |source: &str| wire::Mount {
        source: Some(wire::mount::Source::Bind(source.into())),
        target: "/in".into(),
        read_only: true,
    };
    let container = wire::Container {
        name: "app".into(),
        image: format!("sha256:{}", "0".repeat(64)),
        rollover: wire::Rollover::StopFirst.into(),
        mounts: mount.map(bound).into_iter().collect(),
        environment_files: environment.map(str::to_owned).into_iter().collect(),
        ..wire::Container::default()
    };
    replicator_protocol::resources::Resource {
        id: "m.app".parse().unwrap(),
        confirms_link: false,
        body: wire::resource::Kind::Container(container),
    }
}

#[tokio::test]
async fn runtime_that_cannot_say_is_not_taken_for_absent() {
    let mut bench = Bench::new();
    let mut in_force = bench.in_force(&[]);
    in_force.declaration.resources.push(container(None, None));
    let report = bench.executor.apply(&in_force, Trigger::Declaration, &|| false).await.unwrap();
    assert_eq!(code(&report, 0), "runtime-unreachable");
}

#[tokio::test]
async fn input_that_cannot_be_read_is_not_taken_for_absent() {
    let mut bench = Bench::new();
    // A regular file whose beginning nobody can read.
    let unreadable = "/proc/self/mem";
    for app in [container(Some(unreadable), None), container(None, Some(unreadable))] {
        let mut in_force = bench.in_force(&[]);
        in_force.declaration.resources.push(app);
        let report = bench.executor.apply(&in_force, Trigger::Declaration, &|| false).await.unwrap();
        assert_eq!(code(&report, 0), "input-unreadable");
        let failure = report.results[0].failure.as_ref().unwrap();
        assert_eq!((failure.fields["path"].as_str(), report.results[0].action()), (unreadable, Action::None));
    }
    let missing = bench.path("none").to_str().unwrap().to_owned();
    let mut in_force = bench.in_force(&[]);
    in_force.declaration.resources.push(container(Some(&missing), None));
    let report = bench.executor.apply(&in_force, Trigger::Declaration, &|| false).await.unwrap();
    assert_eq!(code(&report, 0), "runtime-unreachable", "the control: what is not there is told");
}

#[tokio::test]
async fn directory_is_made_with_its_mode_and_twice_is_once() {
    let mut bench = Bench::new();
    let kinds = vec![bench.directory("d", 0o750)];
    assert_eq!(outcomes(&bench.apply_all(kinds.clone()).await), [Outcome::Changed]);
    let made = fs::metadata(bench.path("d")).unwrap();
    assert_eq!((made.is_dir(), made.mode() & 0o7777), (true, 0o750));
    assert_eq!(outcomes(&bench.apply_all(kinds).await), [Outcome::Unchanged]);
    let other = vec![bench.directory("d", 0o700)];
    assert_eq!(outcomes(&bench.apply_all(other).await), [Outcome::Changed]);
    assert_eq!(fs::metadata(bench.path("d")).unwrap().ino(), made.ino());
    assert_eq!(outcomes(&bench.apply_all(vec![]).await), [Outcome::Removed]);
    assert!(!bench.path("d").exists());
}

#[tokio::test]
async fn directory_that_holds_something_is_kept_and_the_report_says_how_much() {
    let mut bench = Bench::new();
    let kinds = vec![bench.directory("d", 0o755)];
    bench.apply_all(kinds).await;
    fs::write(bench.path("d/theirs"), "x").unwrap();
    let report = bench.apply_all(vec![]).await;
    assert_eq!((outcomes(&report), report.results[0].note.as_str()), (vec![Outcome::Kept], "it holds 1 entry"));
    assert!(bench.path("d/theirs").exists());
}

#[tokio::test]
async fn directory_that_was_here_first_stays() {
    let mut bench = Bench::new();
    fs::create_dir(bench.path("d")).unwrap();
    let kinds = vec![bench.directory("d", 0o700)];
    bench.apply_all(kinds).await;
    assert_eq!(outcomes(&bench.apply_all(vec![]).await), [Outcome::Kept]);
    assert!(bench.path("d").is_dir());
}

#[tokio::test]
async fn start_that_finds_nothing_says_nothing_unless_its_report_is_owed() {
    let mut bench = Bench::new();
    let kind = bench.directory("d", 0o755);
    let in_force = bench.in_force_of([kind.clone()]);
    let start = async |bench: &Bench, of: &InForce| {
        let report = bench.executor.apply(of, Trigger::Start, &|| false).await.unwrap();
        assert!(report.complete);
        outcomes(&report)
    };
    assert_eq!(start(&bench, &in_force).await, [Outcome::Changed]);
    let told = bench.entries();
    for _ in 0..2 {
        bench.restart();
        assert_eq!(start(&bench, &in_force).await, [Outcome::Unchanged]);
        assert_eq!(bench.entries(), told);
    }
    fs::remove_dir(bench.path("d")).unwrap();
    bench.restart();
    assert_eq!(start(&bench, &in_force).await, [Outcome::Changed]);
    assert_eq!(bench.entries(), told + 3, "planned, finished, reported");
    // Accepted, and the agent died before it reported: somebody waits for that report.
    let newer = bench.in_force_of([kind]);
    bench.restart();
    assert_eq!(start(&bench, &newer).await, [Outcome::Unchanged]);
    assert_eq!(bench.entries(), told + 4);
}

//! `file`: works; fails half-way and recovers; twice is once; undeclared, what was here before is here again.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::Path;

use replicator_host_agent::config::Layout;
use replicator_host_agent::daemon::Depth;
use replicator_lab::bench::{Bench, code, outcomes};
use replicator_lab::life::{Declared, Life};
use replicator_lab::watch::Watch;
use replicator_protocol::wire::declaration::{File, resource::Kind};
use replicator_protocol::wire::event::{Outcome, Trigger};

/// Somebody who is not root.
const SOMEBODY: u32 = 1000;

fn file(bench: &Bench, name: &str, content: &str, edit: impl FnOnce(&mut File)) -> Kind {
    let mut kind = bench.file(name, content);
    if let Kind::File(file) = &mut kind {
        edit(file);
    }
    kind
}

/// Content, owner, group and mode.
fn standing(path: &Path) -> (String, u32, u32, u32) {
    let seen = fs::symlink_metadata(path).unwrap();
    (fs::read_to_string(path).unwrap(), seen.uid(), seen.gid(), seen.mode() & 0o7777)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn file_is_written_with_owner_and_mode_and_read_back() {
    let mut bench = Bench::new().unwrap();
    let declared = [
        ("m.plain", bench.file("plain", "text")),
        ("m.token", bench.secret("m.token", "hunter22", 1).unwrap()),
        (
            "m.shared",
            file(&bench, "shared", "", |file| {
                (file.owner, file.group, file.mode) = ("1000".into(), "7".into(), Some(0o640));
            }),
        ),
    ];
    let report = bench.apply(&declared).await.unwrap();
    assert_eq!(outcomes(&report), [Outcome::Changed; 3], "{report:?}");
    assert_eq!(standing(&bench.path("plain")), ("text".into(), 0, 0, 0o644));
    assert_eq!(standing(&bench.path("token")), ("hunter22".into(), SOMEBODY, 0, 0o400));
    assert_eq!(standing(&bench.path("shared")), (String::new(), SOMEBODY, 7, 0o640));
    assert_eq!(names(&bench.path("")), ["plain", "shared", "token"], "nothing is left beside them");
    assert_eq!(bench.look(Depth::Full).await.unwrap(), None);
    // Owner and mode alone: the file stays the same one.
    let inode = fs::metadata(bench.path("plain")).unwrap().ino();
    let mode = [("m.plain", file(&bench, "plain", "text", |file| file.mode = Some(0o600)))];
    bench.apply(&mode).await.unwrap();
    assert_eq!(standing(&bench.path("plain")), ("text".into(), 0, 0, 0o600));
    assert_eq!(fs::metadata(bench.path("plain")).unwrap().ino(), inode);
}

#[tokio::test]
async fn file_applied_twice_is_written_once() {
    let mut bench = Bench::new().unwrap();
    let declared =
        [("m.plain", bench.file("plain", "text")), ("m.token", bench.secret("m.token", "hunter22", 1).unwrap())];
    bench.apply(&declared).await.unwrap();
    let watch = Watch::below(&bench.path("")).unwrap();
    // Sealed anew, the same generation is the same secret.
    let again = [declared[0].clone(), ("m.token", bench.secret("m.token", "hunter22", 1).unwrap())];
    assert_eq!(outcomes(&bench.apply(&again).await.unwrap()), [Outcome::Unchanged; 2]);
    assert_eq!(bench.look(Depth::Full).await.unwrap(), None);
    assert!(watch.take().unwrap().is_empty());
    bench.apply(&[("m.plain", bench.file("plain", "other"))]).await.unwrap();
    assert!(watch.take().unwrap().contains(&bench.path("plain")), "the control: a write is seen");
}

#[tokio::test]
async fn file_whose_write_is_cut_off_is_whole_and_is_written_by_the_next_life() {
    let mut bench = Bench::new().unwrap();
    bench.apply(&[("m.conf", bench.file("conf", "0"))]).await.unwrap();
    let faults = ["file.write.before#1", "file.write.after#1", "file.write.before#2", "file.write.after#2"];
    for (turn, fault) in faults.iter().enumerate() {
        let content = format!("{}", turn + 1);
        let declared: Declared = vec![
            ("m.conf".into(), bench.file("conf", &content)),
            (format!("m.{content}"), bench.file(&content, "new")),
        ];
        assert!(Life::new(bench.share(), &declared).meet(&format!("{fault}:kill")).await.unwrap(), "{fault}");
        bench.start().unwrap();
        bench.skip_number();
        let left = fs::read_to_string(bench.path("conf")).unwrap();
        assert!(left == content || left == turn.to_string(), "{fault}: old or new, and whole: `{left}`");
        let resources: Vec<_> = declared.iter().map(|(id, kind)| (id.as_str(), kind.clone())).collect();
        let report = bench.apply(&resources).await.unwrap();
        assert!(report.results.iter().all(|result| result.failure.is_none()), "{fault}: {report:?}");
        assert_eq!(names(&bench.path("")), [&content, "conf"], "{fault}");
        assert_eq!(fs::read_to_string(bench.path("conf")).unwrap(), content, "{fault}");
        assert_eq!(bench.look(Depth::Full).await.unwrap(), None, "{fault}");
    }
    let report = bench.apply(&[]).await.unwrap();
    assert_eq!(outcomes(&report), [Outcome::Removed; 2], "nothing of ours was taken for somebody else's: {report:?}");
    assert_eq!(names(&bench.path("")), [""; 0]);
    assert_eq!(names(&Layout::new(bench.folder()).originals()), [""; 0]);
}

#[tokio::test]
async fn file_that_cannot_be_written_leaves_the_one_before_and_is_written_once_it_can() {
    let mut bench = Bench::new().unwrap();
    let [folder, aside] = ["folder", "aside"].map(|name| bench.path(name));
    fs::create_dir(&folder).unwrap();
    bench.apply(&[("m.conf", bench.file("folder/conf", "old"))]).await.unwrap();
    fs::rename(&folder, &aside).unwrap();
    let report = bench.apply(&[("m.conf", bench.file("folder/conf", "new"))]).await.unwrap();
    assert_eq!(code(&report, 0), "parent-missing", "{report:?}");
    let stranger = [("m.conf", file(&bench, "folder/conf", "new", |file| file.owner = "no-such-login".into()))];
    fs::rename(&aside, &folder).unwrap();
    let report = bench.apply(&stranger).await.unwrap();
    assert_eq!(code(&report, 0), "unknown-owner", "{report:?}");
    assert_eq!(standing(&bench.path("folder/conf")), ("old".into(), 0, 0, 0o644));
    let report = bench.apply(&[("m.conf", bench.file("folder/conf", "new"))]).await.unwrap();
    assert_eq!(outcomes(&report), [Outcome::Changed]);
    assert_eq!(standing(&bench.path("folder/conf")), ("new".into(), 0, 0, 0o644));
    assert_eq!(outcomes(&bench.again(Trigger::Start).await.unwrap()), [Outcome::Unchanged]);
}

#[tokio::test]
async fn undeclared_file_is_removed_restored_or_kept_by_what_stands_there() {
    let mut bench = Bench::new().unwrap();
    fs::write(bench.path("found"), "theirs").unwrap();
    fs::set_permissions(bench.path("found"), Permissions::from_mode(0o604)).unwrap();
    chown(bench.path("found"), Some(SOMEBODY), Some(SOMEBODY)).unwrap();
    let declared = [
        ("m.made", bench.file("made", "ours")),
        ("m.found", bench.file("found", "ours")),
        ("m.altered", bench.file("altered", "ours")),
    ];
    assert_eq!(outcomes(&bench.apply(&declared).await.unwrap()), [Outcome::Changed; 3]);
    fs::write(bench.path("altered"), "by hand").unwrap();
    // As after a crash: all that is known is in the ledger.
    bench.start().unwrap();
    let report = bench.apply(&[]).await.unwrap();
    let told: Vec<_> = report.results.iter().map(|one| (one.resource.as_str(), one.outcome())).collect();
    let expected = [("m.altered", Outcome::Kept), ("m.found", Outcome::Removed), ("m.made", Outcome::Removed)];
    assert_eq!(told, expected, "last applied first");
    assert_eq!(report.results[0].note, "it was changed since it was written");
    assert_eq!(report.results[1].note, "what was here first is back");
    assert_eq!(names(&bench.path("")), ["altered", "found"]);
    assert_eq!(fs::read_to_string(bench.path("altered")).unwrap(), "by hand");
    assert_eq!(standing(&bench.path("found")), ("theirs".into(), SOMEBODY, SOMEBODY, 0o604));
}

#[tokio::test]
async fn link_leads_the_agent_nowhere() {
    let mut bench = Bench::new().unwrap();
    let [theirs, target] = ["theirs", "target"].map(|name| bench.path(name));
    fs::write(&target, "untouched").unwrap();
    symlink(&target, bench.path("link")).unwrap();
    // A folder of root's that nobody else may write, reached by a link: of root's, of somebody's, through somebody's.
    fs::create_dir(bench.path("safe")).unwrap();
    fs::create_dir(&theirs).unwrap();
    chown(&theirs, Some(SOMEBODY), None).unwrap();
    let links = [("roots", "safe"), ("turnable", "safe"), ("through", "turnable"), ("to-theirs", "theirs")];
    for (name, to) in links {
        symlink(bench.path(to), bench.path(name)).unwrap();
    }
    std::os::unix::fs::lchown(bench.path("turnable"), Some(SOMEBODY), None).unwrap();
    let declared = [
        ("m.final", bench.file("link", "x")),
        ("m.roots", bench.file("roots/a", "x")),
        ("m.turnable", bench.file("turnable/b", "x")),
        ("m.through", bench.file("through/c", "x")),
        ("m.theirs", bench.file("to-theirs/d", "x")),
    ];
    let report = bench.apply(&declared).await.unwrap();
    let codes: Vec<_> = (0..declared.len()).map(|at| code(&report, at)).collect();
    assert_eq!(codes, ["wrong-type", "", "unsafe-parent", "unsafe-parent", "unsafe-parent"], "{report:?}");
    assert_eq!(fs::read_to_string(&target).unwrap(), "untouched");
    assert!(fs::symlink_metadata(bench.path("link")).unwrap().is_symlink());
    assert_eq!((names(&bench.path("safe")), names(&theirs)), (vec!["a".into()], vec![]));
}

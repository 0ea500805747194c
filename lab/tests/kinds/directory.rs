//! `directory`: works; fails half-way and recovers; twice is once; undeclared, it goes only where it is empty and ours.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use replicator_host_agent::daemon::Depth;
use replicator_lab::bench::{Bench, code, outcomes};
use replicator_lab::life::{Declared, Life};
use replicator_lab::watch::Watch;
use replicator_protocol::wire::declaration::{Directory, resource::Kind};
use replicator_protocol::wire::event::{Outcome, ReasonCode};

fn folder(bench: &Bench, name: &str, mode: u32) -> Kind {
    let path = bench.path(name).to_string_lossy().into_owned();
    Kind::Directory(Directory { path, owner: "1000".into(), group: "7".into(), mode: Some(mode) })
}

/// Owner, group and mode of a folder.
fn standing(path: &Path) -> (u32, u32, u32) {
    let seen = fs::symlink_metadata(path).unwrap();
    assert!(seen.is_dir());
    (seen.uid(), seen.gid(), seen.mode() & 0o7777)
}

#[tokio::test]
async fn directory_is_made_with_owner_and_mode_and_what_it_holds_is_not_touched() {
    let mut bench = Bench::new().unwrap();
    let nested =
        |bench: &Bench, mode| [("m.data", folder(bench, "data", mode)), ("n.sub", folder(bench, "data/sub", mode))];
    let declared = nested(&bench, 0o750);
    assert_eq!(outcomes(&bench.apply(&declared).await.unwrap()), [Outcome::Changed; 2]);
    assert_eq!(standing(&bench.path("data")), (1000, 7, 0o750));
    assert_eq!(standing(&bench.path("data/sub")), (1000, 7, 0o750));
    fs::write(bench.path("data/theirs"), "x").unwrap();
    fs::set_permissions(bench.path("data/theirs"), fs::Permissions::from_mode(0o604)).unwrap();
    let inode = fs::metadata(bench.path("data")).unwrap().ino();
    let declared = nested(&bench, 0o700);
    assert_eq!(outcomes(&bench.apply(&declared).await.unwrap()), [Outcome::Changed; 2]);
    assert_eq!(
        (standing(&bench.path("data")), fs::metadata(bench.path("data")).unwrap().ino()),
        ((1000, 7, 0o700), inode)
    );
    let theirs = fs::metadata(bench.path("data/theirs")).unwrap();
    assert_eq!((theirs.uid(), theirs.mode() & 0o7777), (0, 0o604));
}

#[tokio::test]
async fn directory_applied_twice_is_made_once_and_a_lost_one_is_made_again() {
    let mut bench = Bench::new().unwrap();
    let declared = [("m.data", folder(&bench, "data", 0o750))];
    bench.apply(&declared).await.unwrap();
    let watch = Watch::below(&bench.path("")).unwrap();
    assert_eq!(outcomes(&bench.apply(&declared).await.unwrap()), [Outcome::Unchanged]);
    assert_eq!(bench.look(Depth::Full).await.unwrap(), None);
    assert!(watch.take().unwrap().is_empty());
    fs::remove_dir(bench.path("data")).unwrap();
    assert!(!watch.take().unwrap().is_empty(), "the control: a write is seen");
    let look = bench.look(Depth::Cheap).await.unwrap().unwrap();
    assert_eq!((outcomes(&look), look.results[0].reasons[0].code()), (vec![Outcome::Changed], ReasonCode::Drift));
    assert_eq!(standing(&bench.path("data")), (1000, 7, 0o750));
}

#[tokio::test]
async fn directory_whose_making_is_cut_off_is_made_by_the_next_life_and_is_ours() {
    let mut bench = Bench::new().unwrap();
    for fault in ["directory.make.before", "directory.make.after", "file.own.before", "file.own.after"] {
        // The folder above is there already and only changes its mode.
        fs::create_dir(bench.path("found")).unwrap();
        let declared: Declared = vec![
            ("m.found".into(), folder(&bench, "found", 0o711)),
            ("m.data".into(), folder(&bench, "found/data", 0o750)),
        ];
        assert!(Life::new(bench.share(), &declared).meet(&format!("{fault}:kill")).await.unwrap(), "{fault}");
        bench.start().unwrap();
        bench.skip_number();
        let resources: Vec<_> = declared.iter().map(|(id, kind)| (id.as_str(), kind.clone())).collect();
        let report = bench.apply(&resources).await.unwrap();
        assert!(report.results.iter().all(|result| result.failure.is_none()), "{fault}: {report:?}");
        assert_eq!(standing(&bench.path("found")), (1000, 7, 0o711), "{fault}");
        assert_eq!(standing(&bench.path("found/data")), (1000, 7, 0o750), "{fault}");
        assert_eq!(bench.look(Depth::Full).await.unwrap(), None, "{fault}");
        let report = bench.apply(&[]).await.unwrap();
        assert_eq!(outcomes(&report), [Outcome::Removed, Outcome::Kept], "{fault}: {report:?}");
        assert!(!bench.path("found/data").exists());
        fs::remove_dir(bench.path("found")).unwrap();
    }
}

#[tokio::test]
async fn directory_that_cannot_be_made_is_reported_and_made_once_it_can() {
    let mut bench = Bench::new().unwrap();
    fs::write(bench.path("data"), "a file").unwrap();
    let declared = [("m.data", folder(&bench, "data", 0o750)), ("n.sub", folder(&bench, "none/sub", 0o750))];
    let report = bench.apply(&declared).await.unwrap();
    assert_eq!((code(&report, 0), code(&report, 1)), ("wrong-type", "parent-missing"), "{report:?}");
    assert_eq!(fs::read_to_string(bench.path("data")).unwrap(), "a file");
    fs::remove_file(bench.path("data")).unwrap();
    fs::create_dir(bench.path("none")).unwrap();
    let report = bench.look(Depth::Full).await.unwrap().unwrap();
    assert_eq!(outcomes(&report), [Outcome::Changed; 2], "{report:?}");
}

#[tokio::test]
async fn undeclared_directory_goes_only_where_it_is_empty_and_was_not_here_first() {
    let mut bench = Bench::new().unwrap();
    fs::create_dir(bench.path("found")).unwrap();
    let names = ["empty", "full", "found"];
    let declared = names.map(|name| (format!("m.{name}"), folder(&bench, name, 0o755)));
    let resources: Vec<_> = declared.iter().map(|(id, kind)| (id.as_str(), kind.clone())).collect();
    assert_eq!(outcomes(&bench.apply(&resources).await.unwrap()), [Outcome::Changed; 3]);
    for name in ["full/a", "full/b"] {
        fs::write(bench.path(name), "theirs").unwrap();
    }
    // As after a crash: all that is known is in the ledger.
    bench.start().unwrap();
    let report = bench.apply(&[]).await.unwrap();
    let told: Vec<_> =
        report.results.iter().map(|one| (one.resource.as_str(), one.outcome(), one.note.as_str())).collect();
    let expected = [
        ("m.found", Outcome::Kept, "it was here first"),
        ("m.full", Outcome::Kept, "it holds 2 entries"),
        ("m.empty", Outcome::Removed, ""),
    ];
    assert_eq!(told, expected);
    assert!(bench.path("found").is_dir() && bench.path("full/b").exists() && !bench.path("empty").exists());
}

//! The ledger is damaged, and another begins.

use super::*;
use crate::ledger::open_or_set_aside;

impl Bench {
    /// The agent's ledger is made unreadable, and the agent is started again.
    fn lose_the_ledger(&mut self) {
        let parked = Bench::executor(tempfile::tempdir().unwrap().path(), &self.keys);
        drop(std::mem::replace(&mut self.executor, parked));
        fs::write(self.folder.path().join("ledger/ledger.db"), "no database".repeat(1000)).unwrap();
        let me = testing::membership();
        let (_, damage) = open_or_set_aside(self.folder.path(), &me.uid, Arc::new(SystemClock)).unwrap();
        assert!(damage.is_some());
        self.executor = Bench::executor(self.folder.path(), &self.keys);
    }
}

#[tokio::test]
async fn what_stands_as_declared_is_the_agents_own_after_its_ledger_was_lost() {
    let mut bench = Bench::new();
    let kinds = |bench: &Bench| {
        let file = wire::resource::Kind::File;
        vec![
            bench.directory("folder", 0o750),
            file(bench.file("folder/conf", "one")),
            file(bench.sealed("token", "a secret", 1)),
        ]
    };
    let declared = kinds(&bench);
    let in_force = bench.in_force_of(declared);
    bench.executor.apply(&in_force, Trigger::Declaration, &|| false).await.unwrap();
    let inode = fs::metadata(bench.path("token")).unwrap().ino();
    bench.lose_the_ledger();
    let report = bench.executor.apply(&in_force, Trigger::Start, &|| false).await.unwrap();
    assert_eq!(outcomes(&report), [Outcome::Changed; 3], "recorded");
    assert_eq!(fs::metadata(bench.path("token")).unwrap().ino(), inode, "and not written again");
    let report = bench.apply(&[]).await;
    assert_eq!(outcomes(&report), [Outcome::Removed; 3], "{report:#?}");
    assert_eq!(fs::read_dir(bench.path("")).unwrap().count(), 0);
    assert!(!Layout::new(bench.folder.path()).originals().exists(), "no copy of the secret is left");
}

#[tokio::test]
async fn what_was_found_equal_or_is_not_as_declared_stays_somebody_elses_after_a_loss() {
    let mut bench = Bench::new();
    fs::write(bench.path("equal"), "same").unwrap();
    let (equal, late) = (bench.file("equal", "same"), bench.file("late", "declared"));
    let in_force = bench.in_force(&[equal]);
    bench.executor.apply(&in_force, Trigger::Declaration, &|| false).await.unwrap();
    bench.lose_the_ledger();
    fs::write(bench.path("late"), "by hand").unwrap();
    let equal = bench.file("equal", "same");
    bench.apply(&[equal, late]).await;
    bench.apply(&[]).await;
    assert_eq!(fs::read(bench.path("equal")).unwrap(), b"same", "it was there before the agent");
    assert_eq!(fs::read(bench.path("late")).unwrap(), b"by hand");
}

#[tokio::test]
async fn folder_with_another_mode_stays_somebody_elses_after_a_loss() {
    let mut bench = Bench::new();
    bench.lose_the_ledger();
    for (name, mode) in [("other", 0o700), ("same", 0o750)] {
        fs::create_dir(bench.path(name)).unwrap();
        fs::set_permissions(bench.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    let declared = vec![bench.directory("other", 0o750), bench.directory("same", 0o750)];
    let in_force = bench.in_force_of(declared);
    bench.executor.apply(&in_force, Trigger::Start, &|| false).await.unwrap();
    bench.apply(&[]).await;
    let stands = ["other", "same"].map(|name| bench.path(name).exists());
    assert_eq!(stands, [true, false], "what is as declared had been applied before");
}

#[tokio::test]
async fn loss_is_over_once_all_was_applied() {
    let mut bench = Bench::new();
    bench.lose_the_ledger();
    bench.apply(&[]).await;
    fs::write(bench.path("later"), "same").unwrap();
    let later = bench.file("later", "same");
    bench.apply(&[later]).await;
    bench.apply(&[]).await;
    assert_eq!(fs::read(bench.path("later")).unwrap(), b"same", "found, though it equals what is declared");
}

#[tokio::test]
async fn secret_that_an_earlier_agent_left_is_never_kept_and_goes_with_the_file() {
    let mut bench = Bench::new();
    fs::write(bench.path("token"), "a secret").unwrap();
    fs::write(bench.path("other"), "by hand").unwrap();
    let declared = [bench.sealed("token", "a secret", 1), bench.sealed("other", "a secret", 1)];
    assert_eq!(outcomes(&bench.apply(&declared).await), [Outcome::Changed; 2]);
    assert_eq!(fs::metadata(bench.path("token")).unwrap().mode() & 0o7777, 0o600);
    let originals: Vec<_> = fs::read_dir(Layout::new(bench.folder.path()).originals()).unwrap().flatten().collect();
    let kept: Vec<_> = originals.iter().map(|entry| fs::read_to_string(entry.path()).unwrap()).collect();
    assert_eq!(kept, ["by hand"], "what was found with other content is somebody else's");
    assert_eq!(outcomes(&bench.apply(&[]).await), [Outcome::Removed; 2]);
    assert!(!bench.path("token").exists());
    assert_eq!(fs::read(bench.path("other")).unwrap(), b"by hand");
}

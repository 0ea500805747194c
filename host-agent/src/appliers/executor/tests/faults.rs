//! A step that fails or dies at any of its points, and what the applies after it make of what it left.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;

use super::*;
use crate::host::point::Effect;
use crate::host::point::faults::armed;

pub(super) type Named = Vec<(&'static str, wire::resource::Kind)>;

/// The effects of files and folders.
const EFFECTS: &[Effect] = &[
    Effect::FileWrite,
    Effect::FilePart,
    Effect::FileLink,
    Effect::FileOwn,
    Effect::FileRemove,
    Effect::DirectoryMake,
    Effect::DirectoryRemove,
];
/// Everything below `folder`, by its path there: mode, and content of files.
fn standing(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        let name = PathBuf::from(path.file_name().unwrap());
        let content = if path.is_dir() { "folder".into() } else { fs::read_to_string(&path).unwrap() };
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
        all.extend(standing(&path).into_iter().map(|(below, what)| (name.join(below), what)));
        all.insert(name, format!("{mode:o} {content}"));
    }
    all
}

impl Bench {
    fn machine(&self) -> BTreeMap<PathBuf, String> {
        standing(&self.path(""))
    }

    /// Applies with a fault, and says whether it struck. An agent that died is started again.
    async fn meets(&mut self, declared: Named, fault: &str) -> bool {
        let in_force = self.in_force_as(declared);
        armed::arm(fault);
        let walk = self.executor.apply(&in_force, Trigger::Declaration, &|| false);
        let died = AssertUnwindSafe(walk).catch_unwind().await.is_err();
        let struck = armed::disarm();
        if died {
            self.restart();
        }
        struck
    }

    /// Applies without a fault, and nothing fails or is left to do.
    pub(super) async fn converges(&mut self, declared: Named, after: &str) {
        let in_force = self.in_force_as(declared);
        let report = self.executor.apply(&in_force, Trigger::Declaration, &|| false).await.unwrap();
        let failed: Vec<_> = report.results.iter().filter(|result| result.failure.is_some()).collect();
        assert!(failed.is_empty(), "{after}: {failed:#?}");
        let look = self.executor.look(&in_force, Depth::Full, &|| false).await.unwrap();
        assert_eq!(look, None, "{after}: nothing is left to do");
    }

    /// What is kept aside for ever.
    fn originals(&self) -> Vec<String> {
        let kept = fs::read_dir(Layout::new(self.folder.path()).originals()).into_iter().flatten();
        kept.map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap()).collect()
    }
}

/// Every way of failing or dying at a point, but for how often it was passed before.
fn faults() -> impl Iterator<Item = (String, &'static str)> {
    let points =
        EFFECTS.iter().flat_map(|effect| ["before", "after"].map(|side| format!("{}.{side}", effect.as_str())));
    points.flat_map(|point| ["error", "kill"].map(|act| (point.clone(), act)))
}

/// What one life declares.
pub(super) type Turn<'t> = &'t dyn Fn(&Bench) -> Named;

/// Goes through `before` without a fault and through `struck` with each; then through each of `after`, and the machine
/// is as if there had been no fault. At the end everything is undeclared, and the machine is as it was found.
pub(super) async fn every_fault(found: impl Fn(&Bench), before: &[Turn<'_>], struck: Turn<'_>, after: &[Turn<'_>]) {
    let mut strikes = 0;
    let first = started(&found, &[]).await.machine();
    let originals: Vec<_> = first.values().map(|what| what.split_once(' ').unwrap().1).collect();
    for (at, next) in after.iter().enumerate() {
        let mut control = started(&found, before).await;
        let declared = next(&control);
        control.converges(declared, "the control").await;
        let expected = control.machine();
        for (point, act) in faults() {
            for nth in 1.. {
                let said = format!("{point}#{nth}:{act}, then {at}");
                let mut bench = started(&found, before).await;
                let declared = struck(&bench);
                if !bench.meets(declared, &format!("{point}#{nth}:{act}")).await {
                    break;
                }
                strikes += 1;
                let declared = next(&bench);
                bench.converges(declared, &said).await;
                assert_eq!(bench.machine(), expected, "{said}");
                bench.converges(vec![], &said).await;
                assert_eq!(bench.machine(), first, "{said}: as it was found");
                for kept in bench.originals() {
                    assert!(originals.contains(&kept.as_str()), "{said}: `{kept}` is nobody's original");
                }
            }
        }
    }
    assert!(strikes > 0, "the control: faults struck");
}

async fn started(found: &impl Fn(&Bench), before: &[Turn<'_>]) -> Bench {
    let mut bench = Bench::new();
    found(&bench);
    for declared in before {
        let declared = declared(&bench);
        bench.converges(declared, "the start").await;
    }
    bench
}

fn found(bench: &Bench) {
    fs::write(bench.path("found"), "theirs").unwrap();
    fs::set_permissions(bench.path("found"), fs::Permissions::from_mode(0o604)).unwrap();
    fs::write(bench.path("alike"), "alike").unwrap();
    fs::set_permissions(bench.path("alike"), fs::Permissions::from_mode(0o644)).unwrap();
    fs::create_dir(bench.path("folder")).unwrap();
    fs::set_permissions(bench.path("folder"), fs::Permissions::from_mode(0o755)).unwrap();
}

pub(super) fn file(file: wire::File) -> wire::resource::Kind {
    wire::resource::Kind::File(file)
}

/// Something of everything, in the turn of `content`.
fn declared(bench: &Bench, content: &str) -> Named {
    let mode = if content == "one" { 0o600 } else { 0o640 };
    let generation = u64::try_from(content.len()).unwrap();
    vec![
        ("found", file(bench.file("found", content))),
        ("alike", file(bench.file("alike", "alike"))),
        ("token", file(bench.sealed("token", &format!("secret {content}"), generation))),
        ("mode", file(wire::File { mode: Some(mode), ..bench.file("mode", "same") })),
        ("folder", bench.directory("folder", 0o755)),
        ("made", bench.directory("made", if content == "one" { 0o700 } else { 0o750 })),
        ("inside", file(wire::File { create_once: true, ..bench.file("made/inside", "seed") })),
    ]
}

#[tokio::test]
async fn first_step_that_fails_or_dies_leaves_nothing_in_doubt() {
    let [one, two] = ["one", "another"].map(|content| move |bench: &Bench| declared(bench, content));
    every_fault(found, &[], &one, &[&one, &two, &|_| vec![]]).await;
}

#[tokio::test]
async fn later_step_that_fails_or_dies_leaves_nothing_in_doubt() {
    let [one, two, three] =
        ["one", "another", "the third"].map(|content| move |bench: &Bench| declared(bench, content));
    every_fault(found, &[&one], &two, &[&two, &three, &one, &|_| vec![]]).await;
}

#[tokio::test]
async fn removal_that_fails_or_dies_leaves_nothing_in_doubt() {
    let [one, two] = ["one", "another"].map(|content| move |bench: &Bench| declared(bench, content));
    every_fault(found, &[&one], &|_| vec![], &[&|_| vec![], &two]).await;
}

#[tokio::test]
async fn what_a_failed_write_left_is_no_drift() {
    let mut bench = Bench::new();
    let [one, two] = ["one", "two"].map(|content| vec![("a", file(bench.file("a", content)))]);
    bench.converges(one, "the start").await;
    assert!(bench.meets(two.clone(), "file.write.after:error").await);
    let in_force = bench.in_force_as(two);
    let look = bench.executor.look(&in_force, Depth::Full, &|| false).await.unwrap().unwrap();
    let reasons: Vec<_> = look.results[0].reasons.iter().map(|reason| reason.code()).collect();
    assert_eq!(reasons, [ReasonCode::FieldChanged, ReasonCode::Unfinished]);
}

#[tokio::test]
async fn what_a_cut_off_write_left_goes_at_the_next_full_look() {
    let mut bench = Bench::new();
    let declared = vec![("folder", bench.directory("d", 0o755)), ("a", file(bench.file("d/a", "x")))];
    let in_force = bench.in_force_as(declared);
    bench.executor.apply(&in_force, Trigger::Declaration, &|| false).await.unwrap();
    let left = bench.path("d/.replicator-0123456789abcdef.part");
    fs::write(&left, "a secret").unwrap();
    assert_eq!(bench.executor.look(&in_force, Depth::Cheap, &|| false).await.unwrap(), None);
    assert!(left.exists(), "a cheap look reads no folder");
    assert_eq!(bench.executor.look(&in_force, Depth::Full, &|| false).await.unwrap(), None);
    assert!(!left.exists());
    // Nothing else would ever go there again.
    fs::write(&left, "a secret").unwrap();
    bench.converges(vec![], "undeclared").await;
    assert_eq!(bench.machine(), BTreeMap::new());
}

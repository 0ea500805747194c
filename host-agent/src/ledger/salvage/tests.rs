use std::fs;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use replicator_protocol::wire::event::{
    ApplyReported, DeclarationRef, Failure, OriginalKept, Outcome, PlannedStep, Record, ResourceResult, StepFinished,
};

use super::*;
use crate::clock::SystemClock;
use crate::ledger::projections::resources::INTERRUPTED;
use crate::ledger::{Ledger, Limits, open_or_set_aside};

const NO_LIMIT: Limits = Limits { file: u64::MAX, budget: u64::MAX };

fn uid() -> HostUid {
    HostUid::parse(&"a".repeat(32)).unwrap()
}

fn result(resource: String) -> ResourceResult {
    ResourceResult { resource, outcome: Outcome::Changed.into(), ..ResourceResult::default() }
}

/// A finished step, of more than a page.
fn made(number: u32) -> Body {
    let record = Record {
        target: format!("/srv/{number}"),
        digest: vec![0; 8192].into(),
        original: "kept".into(),
        found: number.is_multiple_of(2),
        ..Record::default()
    };
    let result = Some(result(format!("web.file-{number}")));
    Body::StepFinished(StepFinished { result, record: Some(record), ..StepFinished::default() })
}

/// A failed step that is not tried again.
fn given_up(resource: &str) -> Body {
    let fields = [(INTERRUPTED.to_owned(), "yes".to_owned())].into();
    let failure = Some(Failure { code: "unhealthy".into(), fields, ..Failure::default() });
    let result = ResourceResult {
        resource: resource.into(),
        outcome: Outcome::Failed.into(),
        failure,
        ..ResourceResult::default()
    };
    Body::StepFinished(StepFinished { result: Some(result), ..StepFinished::default() })
}

/// A ledger with twelve resources, reported, and one more step begun; closed.
fn lived(limits: Limits) -> (tempfile::TempDir, Arc<Resources>) {
    let at = tempfile::tempdir().unwrap();
    let mut ledger = Ledger::open(at.path(), &uid(), Arc::new(SystemClock)).unwrap().within(limits);
    for number in 0..12 {
        ledger.append(None, vec![made(number)]).unwrap();
        ledger.keep_within_limits().unwrap();
    }
    let results = (0..12).map(|number| result(format!("web.file-{number}"))).collect();
    let report = ApplyReported { results, complete: true, ..ApplyReported::default() };
    let about = Record { target: "/srv/late".into(), ..Record::default() };
    let step = PlannedStep { resource: "web.late".into(), about: Some(about), ..PlannedStep::default() };
    let kept = OriginalKept { resource: "web.late".into(), path: "/srv/late".into(), digest: "its".into() };
    let planned = StepsPlanned { module: "web".into(), steps: vec![step] };
    let bodies = vec![Body::ApplyReported(report), Body::StepsPlanned(planned), Body::OriginalKept(kept)];
    ledger.append(None, bodies).unwrap();
    // One that is recorded, and one of which nothing else is known.
    let declaration = DeclarationRef { epoch: 1, sequence: 2, hash: vec![3].into() };
    ledger.append(Some(&declaration), vec![given_up("web.file-7"), given_up("web.never")]).unwrap();
    let resources = Arc::clone(&ledger.state().resources);
    (at, resources)
}

/// What the ledger that follows a damaged one knows.
fn recovered(folder: &Path) -> Arc<Resources> {
    let (ledger, damage) = open_or_set_aside(folder, &uid(), Arc::new(SystemClock)).unwrap();
    assert!(damage.is_some(), "the control");
    Arc::clone(&ledger.state().resources)
}

/// Records and places; not the events that first told them, which are others now.
fn known(resources: &Resources) -> Vec<(String, Record, Option<usize>)> {
    resources.applied.iter().map(|(name, one)| (name.clone(), one.record.clone(), one.place)).collect()
}

fn alter(database: &Path, number: u64) {
    let connection = Connection::open(database).unwrap();
    connection.execute_batch("DROP TRIGGER events_are_never_changed").unwrap();
    connection.execute("UPDATE events SET payload = x'00' WHERE number = ?", [number]).unwrap();
}

#[test]
fn all_but_the_altered_entry_is_known_to_the_new_ledger() {
    let (at, before) = lived(NO_LIMIT);
    // Number 5 tells of the fourth file.
    alter(&at.path().join("ledger/ledger.db"), 5);
    let after = recovered(at.path());
    assert!(after.lost && !before.lost);
    let mut expected = known(&before);
    expected.retain(|(name, ..)| name != "web.file-3");
    assert_eq!(known(&after), expected);
    assert_eq!((&after.begun, &after.loose), (&before.begun, &before.loose), "half done as before");
    assert_eq!((&after.given_up, after.given_up.len()), (&before.given_up, 2), "not tried again");
}

#[test]
fn what_lies_behind_a_page_that_cannot_be_read_is_known_too() {
    let (at, before) = lived(NO_LIMIT);
    let database = at.path().join("ledger/ledger.db");
    let middle = fs::metadata(&database).unwrap().len() / 4096 / 2 * 4096;
    let file = fs::OpenOptions::new().write(true).open(&database).unwrap();
    file.write_all_at(&[0xff; 4096], middle).unwrap();
    let after = recovered(at.path());
    assert!(after.applied.len() >= 8, "{:?}", after.applied.keys());
    assert!(known(&after).iter().all(|one| known(&before).contains(one)));
    assert!(after.applied.contains_key("web.file-0") && after.applied.contains_key("web.file-11"));
}

#[test]
fn checkpoint_covers_a_file_that_cannot_be_read_at_all() {
    let (at, before) = lived(Limits { file: 100 << 10, budget: u64::MAX });
    assert!(files::list(&at.path().join("ledger")).unwrap().len() > 1, "the control");
    fs::write(at.path().join("ledger/ledger.db"), "no database".repeat(1000)).unwrap();
    assert_eq!(known(&recovered(at.path())), known(&before));
}

#[test]
fn nothing_is_known_where_nothing_can_be_read() {
    let (at, _) = lived(NO_LIMIT);
    fs::write(at.path().join("ledger/ledger.db"), "no database".repeat(1000)).unwrap();
    let resources = recovered(at.path());
    assert!(resources.applied.is_empty() && resources.lost);
}

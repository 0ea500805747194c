use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use replicator_protocol::declaration::Declaration;
use replicator_protocol::wire::event::ResourceResult;

use super::*;
use crate::inbox::reference;
use crate::reporter::Known;
use crate::testing::declaration;

/// A clock that stands still until it is set.
#[derive(Default)]
struct Still(AtomicU64);

impl Clock for Still {
    fn wall_time(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    fn monotonic_time(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    fn boot_id(&self) -> String {
        "boot".into()
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Call {
    Apply(u64, Trigger),
    Look(Depth),
}

/// Records what it was asked, and fails as often as told.
#[derive(Default)]
struct Recorder {
    calls: Mutex<Vec<Call>>,
    failures: Mutex<u32>,
    /// Keeps an apply going until something newer waits.
    hangs: bool,
}

impl Recorder {
    fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }
}

impl Applier for Recorder {
    async fn apply(
        &self,
        in_force: &InForce,
        trigger: Trigger,
        newer_waiting: super::super::NewerWaiting<'_>,
    ) -> Result<ApplyReported, ApplyError> {
        self.calls.lock().unwrap().push(Call::Apply(in_force.reference.sequence, trigger));
        if self.hangs && in_force.reference.sequence == 1 {
            while !newer_waiting() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            return Ok(ApplyReported::default());
        }
        let mut failures = self.failures.lock().unwrap();
        if *failures > 0 {
            *failures -= 1;
            return Err(ApplyError { what: "made what is declared", source: "docker is down".into() });
        }
        Ok(ApplyReported { complete: true, ..ApplyReported::default() })
    }

    async fn look(
        &self,
        _in_force: &InForce,
        depth: Depth,
        _newer_waiting: super::super::NewerWaiting<'_>,
    ) -> Result<Option<ApplyReported>, ApplyError> {
        self.calls.lock().unwrap().push(Call::Look(depth));
        Ok(None)
    }
}

fn in_force(sequence: u64) -> Option<Arc<InForce>> {
    let declaration = Declaration::from_wire(&declaration(1, sequence)).unwrap();
    let reference = reference(declaration.position, replicator_protocol::ids::Digest([0; 32]));
    Some(Arc::new(InForce { declaration, reference, envelope: Bytes::new() }))
}

struct Running {
    recorder: Arc<Recorder>,
    declare: watch::Sender<Option<Arc<InForce>>>,
    runtime: mpsc::Sender<Heard>,
    vitals: Vitals,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

fn running(recorder: Recorder, first: Option<Arc<InForce>>) -> Running {
    let (declare, in_force) = watch::channel(first);
    let (runtime, heard) = mpsc::channel(8);
    let (recorder, vitals, stop) = (Arc::new(recorder), Vitals::default(), CancellationToken::new());
    let inputs = Inputs { in_force, heard, intervals: Intervals::default() };
    let clock: Arc<dyn Clock> = Arc::new(Still::default());
    let task = tokio::spawn(keep_applying(recorder.clone(), inputs, (vitals.clone(), clock), stop.clone()));
    Running { recorder, declare, runtime, vitals, stop, task }
}

impl Running {
    /// Waits until `count` calls were made, at most five seconds.
    async fn calls(&self, count: usize) -> Vec<Call> {
        for _ in 0..500 {
            if self.recorder.calls().len() >= count {
                return self.recorder.calls();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("only {:?}", self.recorder.calls());
    }

    async fn ended(self) -> Vec<Call> {
        self.stop.cancel();
        tokio::time::timeout(Duration::from_secs(5), self.task).await.unwrap().unwrap();
        self.recorder.calls()
    }
}

#[tokio::test]
async fn declaration_in_force_is_applied_at_start_without_being_told_again() {
    let running = running(Recorder::default(), in_force(7));
    assert_eq!(running.calls(1).await, [Call::Apply(7, Trigger::Start)]);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(running.vitals.known().applied.unwrap().sequence, 7);
    assert_eq!(running.ended().await.len(), 1);
}

#[tokio::test]
async fn nothing_is_applied_before_there_is_a_declaration() {
    let running = running(Recorder::default(), None);
    running.runtime.send(Heard::Happened).await.unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    running.declare.send_replace(in_force(1));
    assert_eq!(running.calls(1).await, [Call::Apply(1, Trigger::Declaration)]);
    running.ended().await;
}

#[tokio::test]
async fn newer_declaration_is_taken_at_the_next_safe_point() {
    let running = running(Recorder { hangs: true, ..Recorder::default() }, in_force(1));
    running.calls(1).await;
    running.declare.send_replace(in_force(2));
    running.declare.send_replace(in_force(3));
    let calls = running.calls(2).await;
    assert_eq!(calls[..], [Call::Apply(1, Trigger::Start), Call::Apply(3, Trigger::Declaration)]);
    running.ended().await;
}

#[tokio::test]
async fn runtime_events_are_answered_by_one_cheap_look() {
    let running = running(Recorder::default(), in_force(1));
    running.calls(1).await;
    for _ in 0..3 {
        running.runtime.send(Heard::Happened).await.unwrap();
    }
    assert_eq!(running.calls(2).await[1], Call::Look(Depth::Cheap));
    assert_eq!(running.ended().await.len(), 2);
}

#[tokio::test]
async fn failed_apply_stays_owed_and_a_new_declaration_is_applied_at_once() {
    let running = running(Recorder { failures: Mutex::new(1), ..Recorder::default() }, in_force(1));
    running.calls(1).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(running.vitals.known().applied.is_none());
    running.declare.send_replace(in_force(2));
    assert_eq!(running.calls(2).await[1], Call::Apply(2, Trigger::Declaration));
    running.ended().await;
}

#[tokio::test]
async fn runtime_that_is_back_has_a_failed_apply_done_at_once() {
    let running = running(Recorder { failures: Mutex::new(1), ..Recorder::default() }, in_force(1));
    running.calls(1).await;
    // What the apply itself did in the runtime brings on nothing.
    running.runtime.send(Heard::Happened).await.unwrap();
    running.runtime.send(Heard::Back).await.unwrap();
    assert_eq!(running.calls(2).await[1], Call::Apply(1, Trigger::Start));
    running.ended().await;
}

#[tokio::test]
async fn told_to_stop_it_ends_at_the_next_safe_point() {
    let running = running(Recorder { hangs: true, ..Recorder::default() }, in_force(1));
    running.calls(1).await;
    assert_eq!(running.ended().await, [Call::Apply(1, Trigger::Start)]);
}

#[test]
fn failed_and_skipped_resources_are_not_well() {
    let with = |outcome: Outcome| ApplyReported {
        complete: true,
        results: vec![ResourceResult { outcome: outcome.into(), ..ResourceResult::default() }],
        ..ApplyReported::default()
    };
    assert!(is_well(&with(Outcome::Unchanged)));
    assert!(!is_well(&with(Outcome::Failed)));
    assert!(!is_well(&with(Outcome::Skipped)));
    assert_eq!(summary(&with(Outcome::Kept)), "1 kept");
}

#[test]
fn look_is_said_to_have_mended_only_what_it_did() {
    let of = |outcomes: &[Outcome]| {
        let result = |outcome: &Outcome| ResourceResult { outcome: (*outcome).into(), ..ResourceResult::default() };
        let results = outcomes.iter().map(result).collect();
        came_of(&ApplyReported { complete: true, results, ..ApplyReported::default() })
    };
    use Outcome::{Changed, Failed, Removed, Skipped, Unchanged};
    assert_eq!(of(&[Unchanged, Changed]), "mended what was not as declared");
    assert_eq!(of(&[Removed]), "mended what was not as declared");
    assert_eq!(of(&[Unchanged]), "what failed before is as declared");
    assert_eq!(of(&[Failed, Changed]), "mended some of what was not as declared, and some is not yet");
    assert_eq!(of(&[Failed, Skipped]), "what is not as declared could not be mended");
}

/// One that waits for a disk that does not answer: it holds its thread.
struct Stuck(Mutex<std::sync::mpsc::Receiver<()>>);

impl Applier for Stuck {
    async fn apply(
        &self,
        _in_force: &InForce,
        _trigger: Trigger,
        _newer_waiting: super::super::NewerWaiting<'_>,
    ) -> Result<ApplyReported, ApplyError> {
        self.0.lock().unwrap().recv_timeout(Duration::from_secs(5)).unwrap();
        Ok(ApplyReported { complete: true, ..ApplyReported::default() })
    }

    async fn look(
        &self,
        _in_force: &InForce,
        _depth: Depth,
        _newer_waiting: super::super::NewerWaiting<'_>,
    ) -> Result<Option<ApplyReported>, ApplyError> {
        Ok(None)
    }
}

#[tokio::test]
async fn apply_that_waits_for_the_disk_holds_up_nothing_else() {
    let (answer, disk) = std::sync::mpsc::channel();
    let (_declare, in_force) = watch::channel(in_force(1));
    let (_runtime, heard) = mpsc::channel(1);
    let (vitals, stop, tasks) = (Vitals::default(), CancellationToken::new(), TaskTracker::new());
    let inputs = Inputs { in_force, heard, intervals: Intervals::default() };
    let clock: Arc<dyn Clock> = Arc::new(Still::default());
    let applying = keep_applying(Arc::new(Stuck(Mutex::new(disk))), inputs, (vitals.clone(), clock), stop.clone());
    on_a_thread_of_its_own(&tasks, applying);
    let known = async |is_so: fn(&Known) -> bool| {
        let wait = async {
            while !is_so(&vitals.known()) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), wait).await.unwrap();
    };
    // This runtime has one thread. Were the apply on it, nothing would come to the line that lets it go on.
    known(|known| known.seen.is_some()).await;
    answer.send(()).unwrap();
    known(|known| known.applied.is_some()).await;
    stop.cancel();
    tasks.close();
    tokio::time::timeout(Duration::from_secs(5), tasks.wait()).await.unwrap();
}

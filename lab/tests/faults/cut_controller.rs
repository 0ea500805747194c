//! Cut off behind any of its effects, a verb of the controller goes on when it is run again: the same state as if it
//! had never been cut off, nothing twice, and logs that verify.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use replicator::home::{FleetFolder, Home};
use replicator::keys::accounts::{self, Member};
use replicator::link;
use replicator::point::Effect;
use replicator::publisher::accounts::{push_missing, remove_withdrawn};
use replicator::serve::Store;
use replicator::state::{Entry, Event, HostState, Status};
use replicator_host_agent::config::Layout;
use replicator_host_agent::ledger::Reader;
use replicator_lab::fleet::binary;
use replicator_lab::nats::Broker;
use replicator_lab::verb::{Ended, Verb, ended};
use replicator_lab::wait;

use crate::stories::collector::{Bed as Collected, batch, bed_without_serve, history};

/// Hosts at once: most of the time is waiting for agents.
const HOSTS: usize = 8;

/// Longest wait for a receipt, or for what is done behind it.
const SOON: Duration = Duration::from_secs(40);

/// What all hosts of a test share.
struct Bed {
    broker: Broker,
    /// Points behind which a verb was cut off.
    struck: Mutex<BTreeSet<String>>,
    next: AtomicU32,
}

/// One host, whose verbs are cut off.
struct Host {
    bed: Arc<Bed>,
    machine: tempfile::TempDir,
    name: String,
}

impl Drop for Host {
    fn drop(&mut self) {
        for pid in agents(self.machine.path()) {
            let Some(pid) = rustix::process::Pid::from_raw(pid) else { continue };
            // Gone already is as good.
            let _gone = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

/// The agents that run under `root`.
fn agents(root: &Path) -> Vec<i32> {
    let arguments = format!("\0--root\0{}\0run\0", root.display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<i32>() else { continue };
        let said = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        found.extend(String::from_utf8_lossy(&said).ends_with(&arguments).then_some(pid));
    }
    found
}

/// Host accounts that the broker holds, beside those it starts with.
fn held_accounts(fleet: &FleetFolder) -> BTreeSet<String> {
    let configuration = std::fs::read_to_string(fleet.broker().join("nats.conf")).unwrap();
    let files = std::fs::read_dir(fleet.broker().join("resolver")).unwrap().flatten();
    let names = files.filter_map(|file| Some(file.file_name().to_str()?.strip_suffix(".jwt")?.to_owned()));
    names.filter(|name| !configuration.contains(name.as_str())).collect()
}

impl Host {
    /// Its broker, where it is the only host.
    fn broker(&mut self) -> &mut Broker {
        &mut Arc::get_mut(&mut self.bed).unwrap().broker
    }

    fn verb(&self, verb: &str) -> Verb {
        let home = self.bed.broker.home.root().to_owned();
        let (machine, agent) = (self.machine.path().to_owned(), binary("replicator-host-agent").unwrap());
        Verb { home, host: self.name.clone(), machine, agent, verb: verb.into() }
    }

    /// Cuts the verb off behind its `nth` effect; whether there was one. Then does what `serve` does meanwhile.
    async fn cut(&self, verb: &str, nth: u32) -> bool {
        let ended = self.verb(verb).process(&format!("any#{nth}")).await.unwrap();
        assert!(ended.done || ended.cut.is_some(), "{verb}: {}", ended.said);
        let system = link::connect(&self.bed.broker.fleet, Member::System).await.unwrap();
        remove_withdrawn(&self.bed.broker.fleet, &system).await.unwrap();
        push_missing(&self.bed.broker.fleet, &system).await.unwrap();
        let was_cut = ended.cut.is_some();
        self.bed.struck.lock().unwrap().extend(ended.cut);
        was_cut
    }

    async fn done(&self, verb: &str, after: &str) -> Ended {
        let ended = self.verb(verb).process("").await.unwrap();
        assert!(ended.done, "{verb} after {after}: {}", ended.said);
        ended
    }

    /// The entries since the host was defined last, and what all of them add up to.
    async fn history(&self) -> (Vec<Entry>, HostState) {
        let history = self.verb("").log().unwrap().read().await.unwrap();
        let since = history.entries.iter().rposition(|entry| matches!(entry.event, Event::HostDefined { .. }));
        (history.entries[since.unwrap()..].to_vec(), history.state)
    }

    async fn is_up(&self, after: &str) {
        let (entries, state) = self.history().await;
        assert_eq!(state.status, Status::Admitted, "{after}");
        let set_up = entries.iter().filter(|entry| matches!(entry.event, Event::AgentSetUp { .. })).count();
        assert_eq!(set_up, 1, "{after}");
        let (issued, reported) = (state.last_issued().unwrap(), state.reported.as_ref().unwrap());
        assert!(issued.published && reported.position == issued.position, "{after}");
        assert_eq!(state.known.len(), 1, "{after}");
        assert!(self.verb("").folder().is_dir(), "{after}");
        assert_eq!(agents(self.machine.path()).len(), 1, "{after}: one agent runs");
        let fleet = &self.bed.broker.fleet;
        let uid = &state.identity.as_ref().unwrap().1;
        let account = accounts::id(fleet, uid).unwrap().unwrap();
        assert!(held_accounts(fleet).contains(&account), "{after}: the broker knows its account");
        let ledger = Reader::open(&Layout::new(self.machine.path()).ledger()).unwrap().unwrap();
        ledger.verify().unwrap();
    }

    async fn is_down(&self, after: &str) {
        let (entries, state) = self.history().await;
        assert_eq!(state.status, Status::Retired, "{after}");
        let begun = entries.iter().filter(|entry| matches!(entry.event, Event::RetirementBegun { .. })).count();
        assert_eq!(begun, 1, "{after}");
        assert!(!self.verb("").folder().exists(), "{after}: what was declared is gone");
        assert_eq!(agents(self.machine.path()), [0; 0], "{after}: no agent runs");
        assert!(!Layout::new(self.machine.path()).state().exists(), "{after}: nothing of the agent's is left");
        let (_, uid) = state.identity.unwrap();
        assert_eq!(accounts::id(&self.bed.broker.fleet, &uid).unwrap(), None, "{after}: its account is forgotten");
    }

    /// One life, each verb of it cut off behind its `nth` effect. Whether any was.
    async fn lives(&self, nth: u32) -> bool {
        let after = |verb: &str| format!("{verb} was cut off behind effect {nth}");
        let mut any = self.cut("up", nth).await;
        self.done("up", &after("up")).await;
        self.is_up(&after("up")).await;
        any |= self.cut("converge", nth).await;
        self.done("converge", &after("converge")).await;
        self.is_up(&after("converge")).await;
        any |= self.cut("down", nth).await;
        // Whoever comes next finishes it, also one who wants the host up.
        if nth.is_multiple_of(2) {
            self.done("up", &after("down")).await;
            self.is_up(&after("down")).await;
        }
        self.done("down", &after("down")).await;
        self.is_down(&after("down")).await;
        any
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn host_that_was_cut_off_goes_up_and_down_all_the_same() {
    let broker = Broker::start().await.unwrap();
    let bed = Arc::new(Bed { broker, struck: Mutex::default(), next: AtomicU32::new(1) });
    let host = |number: usize| {
        let machine = tempfile::tempdir().unwrap();
        Host { bed: Arc::clone(&bed), machine, name: format!("host-{number}") }
    };
    // What is made once for a whole fleet is made here, so that the lives that follow have the same effects.
    assert!(!host(HOSTS).lives(0).await, "the control: nothing was cut off");
    let mut hosts = tokio::task::JoinSet::new();
    for number in 0..HOSTS {
        let host = host(number);
        hosts.spawn(async move { while host.lives(host.bed.next.fetch_add(1, Ordering::SeqCst)).await {} });
    }
    while let Some(ended) = hosts.join_next().await {
        ended.unwrap();
    }
    let fleet = &bed.broker.fleet;
    assert_eq!(held_accounts(fleet), BTreeSet::new(), "no retired host can come back");
    let struck = bed.struck.lock().unwrap();
    let never: Vec<_> = [
        Effect::FileMake,
        Effect::FileReplace,
        Effect::FileRemove,
        Effect::ObjectCreate,
        Effect::AccountPush,
        Effect::AccountRemove,
        Effect::MessagePublish,
        Effect::EnrolmentStart,
        Effect::EnrolmentSend,
        Effect::AgentLog,
        Effect::AgentStart,
        Effect::AgentNumber,
        Effect::AgentEnd,
        Effect::AgentForget,
    ]
    .iter()
    .filter(|effect| !struck.contains(effect.as_str()))
    .collect();
    assert_eq!(never, [] as [&Effect; 0], "the control: each of these was struck; {struck:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn host_is_let_go_with_its_broker_gone_which_is_told_later() {
    let bed =
        Arc::new(Bed { broker: Broker::start().await.unwrap(), struck: Mutex::default(), next: AtomicU32::new(1) });
    let mut host = Host { bed, machine: tempfile::tempdir().unwrap(), name: "host-1".into() };
    host.done("up", "nothing").await;
    host.broker().kill();

    // Without the broker nothing is begun, for a host that has something and for one that has nothing to be removed.
    let entries = host.history().await.0.len();
    let refused = host.verb("down").process("").await.unwrap();
    assert!(!refused.done && refused.said.contains("without its broker"), "{}", refused.said);
    assert_eq!(host.history().await.0.len(), entries, "something was recorded");
    assert_eq!(agents(host.machine.path()).len(), 1, "its agent runs");

    // Cut off behind one effect after the other, it comes to its end.
    let mut cuts = BTreeSet::new();
    while let Some(cut) = host.verb("down-abandon").process("any#1").await.unwrap().cut {
        assert!(cuts.len() < 20, "no end: {cuts:?}");
        cuts.insert(cut);
        let refused = host.verb("down").process("").await.unwrap();
        assert!(!refused.done || host.history().await.1.status == Status::Retired, "{}", refused.said);
    }
    let (_, state) = host.history().await;
    let uid = state.identity.unwrap().1;
    assert_eq!(state.status, Status::Retired, "{cuts:?}");
    assert_eq!(agents(host.machine.path()), [0; 0]);
    assert!(host.verb("").folder().exists(), "what it had stays");
    let fleet = host.bed.broker.fleet.clone();
    assert!(accounts::kept_accounts(&fleet).unwrap().is_empty(), "nobody pushes its account again");

    // Back, the broker is told by whoever reaches it first; the host comes back under a new number.
    assert!(!host.verb("up").process("").await.unwrap().done, "the broker is gone yet");
    host.broker().resume().await.unwrap();
    assert_eq!(held_accounts(&fleet).len(), 1);
    host.done("up", "down").await;
    host.is_up("down").await;
    assert_eq!(accounts::id(&fleet, &uid).unwrap(), None);
    assert_eq!(held_accounts(&fleet).len(), 1, "the one it has now");
}

/// A `serve` of its own process.
struct Serve(Child);

impl Serve {
    fn start(home: &Path, said: &Path, cut: &str) -> Self {
        let log = File::create(said).unwrap();
        let mut command = Command::new(binary("replicator").unwrap());
        command.args(["serve", "--listen", "127.0.0.1:0"]).env("REPLICATOR_HOME", home).env("REPLICATOR_CUT", cut);
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        Self(command.spawn().unwrap())
    }

    fn has_ended(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        // Gone already is as good.
        let _gone = self.0.kill();
        let _ended = self.0.wait();
    }
}

/// Says three events until the broker takes them, and then waits for their receipt or the end of `serve`.
async fn receipted(bed: &Collected, serve: &mut Serve) -> bool {
    let batch = batch(&bed.uid, &history(&bed.uid, 3));
    let mut said = false;
    let ended = wait::until("a receipt, or the end of serve", SOON, async || {
        said = said || bed.say(&batch, &bed.identity).await.is_ok();
        let receipt = bed.receipt().await.ok().flatten();
        let receipted = receipt.is_some_and(|receipt| receipt.number == 3);
        Ok((receipted || serve.has_ended()).then_some(receipted))
    });
    ended.await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn collector_that_was_cut_off_stores_and_receipts_all_of_it_once() {
    // Each effect as often as it is done until all is receipted. By name: which task comes first is a matter of chance.
    let points = [
        (Effect::FolderMake, 1),
        (Effect::StoreAgain, 1),
        (Effect::StoreOpen, 5),
        (Effect::FileReplace, 1),
        (Effect::StreamMake, 4),
        (Effect::FillKeep, 1),
        (Effect::MessagePublish, 2),
        (Effect::ConsumerMake, 1),
        (Effect::BatchStore, 1),
        (Effect::BatchAcknowledge, 1),
    ];
    for (effect, times) in points {
        for nth in 1..=times {
            let cut = format!("{}#{nth}", effect.as_str());
            let bed = bed_without_serve().await.unwrap();
            let (home, said) = (bed.broker.home.root(), bed.broker.home.root().join("serve.log"));
            let mut serve = Serve::start(home, &said, &cut);
            receipted(&bed, &mut serve).await;
            let ended = wait::until("the end of serve", SOON, async || Ok(serve.has_ended().then_some(())));
            ended.await.unwrap_or_else(|_| panic!("{cut} struck nothing"));
            let mut serve = Serve::start(home, &said, "");
            let well = receipted(&bed, &mut serve).await;
            assert!(well, "behind {cut}: {}", std::fs::read_to_string(&said).unwrap());
            let store = Store::read_only(&bed.broker.home.collected_events()).unwrap();
            let numbers: Vec<_> = store.events_after(0, None, 9).unwrap().iter().map(|one| one.event.number).collect();
            assert_eq!(numbers, [1, 2, 3], "behind {cut}");
            assert_eq!(store.faults().unwrap(), [], "behind {cut}");
        }
    }
}

impl Serve {
    /// Waits until it serves, or has ended. Whether it serves.
    async fn serves(&mut self, said: &Path) -> bool {
        let ended = wait::until("serve, or its end", SOON, async || {
            let serves = std::fs::read_to_string(said)?.contains("Collecting for the fleet");
            Ok((serves || self.has_ended()).then_some(serves))
        });
        ended.await.unwrap()
    }

    async fn ended(&mut self) {
        wait::until("the end of serve", SOON, async || Ok(self.has_ended().then_some(()))).await.unwrap();
    }
}

/// The numbers of all that is stored.
fn stored(database: &Path) -> Vec<u64> {
    let store = Store::read_only(database).unwrap();
    store.events_after(0, None, 9).unwrap().iter().map(|one| one.event.number).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn store_whose_mending_was_cut_off_is_mended_at_the_next_start() {
    let bed = bed_without_serve().await.unwrap();
    let (home, said) = (bed.broker.home.root(), bed.broker.home.root().join("serve.log"));
    let database = bed.broker.home.collected_events();
    let start = async |cut: String| {
        let mut serve = Serve::start(home, &said, &cut);
        (serve.serves(&said).await, serve)
    };
    let (_, mut serve) = start(String::new()).await;
    assert!(receipted(&bed, &mut serve).await);
    drop(serve);

    // Removed while it is in use: written, what lay beside it removed, and put in its place.
    for nth in 1..=4 {
        let (serves, mut serve) = start(format!("{}#{nth}", Effect::StoreAgain.as_str())).await;
        assert!(serves, "the removal is what it mends");
        std::fs::remove_file(&database).unwrap();
        serve.ended().await;
        let (serves, _serve) = start(String::new()).await;
        assert!(serves, "after cut {nth}: {}", std::fs::read_to_string(&said).unwrap());
        assert_eq!(stored(&database), [1, 2, 3], "after cut {nth}");
    }

    // A damaged one in its place: what is still open is written, what lay beside it removed, the damaged one put aside.
    let spoilt = bed.broker.home.root().join("spoilt");
    let cuts = [(Effect::StoreAside, 1), (Effect::StoreAgain, 4)];
    let cuts = cuts.into_iter().flat_map(|(effect, times)| (1..=times).map(move |nth| (effect, nth)));
    for (effect, nth) in cuts {
        let cut = format!("{}#{nth}", effect.as_str());
        let (serves, mut serve) = start(cut.clone()).await;
        assert!(serves, "the damage is what it mends");
        std::fs::write(&spoilt, "this is no database".repeat(400)).unwrap();
        std::fs::rename(&spoilt, &database).unwrap();
        serve.ended().await;
        let (serves, _serve) = start(String::new()).await;
        assert!(serves, "after {cut}: {}", std::fs::read_to_string(&said).unwrap());
        assert_eq!(stored(&database), [1, 2, 3], "after {cut}");
    }
    let beside = std::fs::read_dir(database.parent().unwrap()).unwrap().flatten();
    let damaged = beside.filter(|entry| entry.file_name().to_string_lossy().contains(".damaged-"));
    assert_eq!(damaged.filter(|entry| entry.path().join("events.db").exists()).count(), 5, "none is written over");

    // And it goes on from there, as do the answers folded from it.
    let (_, mut serve) = start(String::new()).await;
    assert!(receipted(&bed, &mut serve).await);
    assert_eq!(stored(&database), [1, 2, 3]);
    drop(serve);
    let status = ["fleet", "status", "-o", "json"];
    for effect in [Effect::ProjectionsMake, Effect::ProjectionsFold] {
        let cut = replicator(home, &status, &format!("{}#1", effect.as_str())).await;
        assert_eq!(cut.cut.as_deref(), Some(effect.as_str()), "{}", cut.said);
        let again = replicator(home, &status, "").await;
        assert!(again.done && again.said.contains("\"stored\": 3"), "{}", again.said);
        std::fs::remove_file(bed.broker.home.projections()).unwrap();
    }
    let (_, mut serve) = start(format!("{}#1", Effect::HeartbeatKeep.as_str())).await;
    let heard = async || {
        bed.beat().await?;
        Ok(serve.has_ended().then_some(()))
    };
    wait::until("a heartbeat", SOON, heard).await.unwrap();
    let heartbeats = Store::read_only(&database).unwrap().heartbeats().unwrap();
    assert_eq!(heartbeats.len(), 1, "it is kept");
}

/// The program, cut off as `cut` says.
async fn replicator(home: &Path, arguments: &[&str], cut: &str) -> Ended {
    let mut command = tokio::process::Command::new(binary("replicator").unwrap());
    command.args(arguments).env("REPLICATOR_HOME", home).env("REPLICATOR_CUT", cut).env("NO_COLOR", "1");
    ended(command).await.unwrap()
}

/// Every file below `folder`, by its path.
fn files(folder: &Path) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            all.extend(files(&path).into_iter().map(|below| format!("{name}/{below}")));
        }
        all.insert(name);
    }
    all
}

#[tokio::test]
async fn fleet_whose_making_was_cut_off_is_made_whole_and_leaves_no_key_behind() {
    let folder = tempfile::tempdir().unwrap();
    let init = ["broker", "init", "--fleet", "lab", "--listen", "127.0.0.1:4222", "--name", "broker.lab"];
    let whole = folder.path().join("whole");
    assert!(replicator(&whole, &init, "").await.done);
    let mut struck = BTreeSet::new();
    for nth in 1.. {
        let home = folder.path().join(nth.to_string());
        let Some(cut) = replicator(&home, &init, &format!("any#{nth}")).await.cut else { break };
        let again = replicator(&home, &init, "").await;
        let stands = cut == Effect::FleetPlace.as_str();
        assert!(again.done != stands, "{cut}: {}", again.said);
        assert!(!stands || again.said.contains("was set up already"), "{cut}: {}", again.said);
        assert_eq!(files(&home), files(&whole), "behind effect {nth}, {cut}");
        struck.insert(cut);
    }
    assert!(struck.contains(Effect::FleetDraft.as_str()) && struck.contains(Effect::FleetPlace.as_str()));
}

#[tokio::test]
async fn secret_whose_setting_was_cut_off_is_set_once() {
    let folder = tempfile::tempdir().unwrap();
    let value = folder.path().join("value");
    std::fs::write(&value, "planted-value\n").unwrap();
    let set = async |home: &Path, cut: &str| {
        let mut command = tokio::process::Command::new("sh");
        command.args(["-c", "exec \"$0\" secrets set token --app lab < \"$1\""]);
        command.arg(binary("replicator").unwrap()).arg(&value);
        command.env("REPLICATOR_HOME", home).env("REPLICATOR_CUT", cut);
        ended(command).await.unwrap()
    };
    let mut struck = Vec::new();
    for nth in 1.. {
        let home = folder.path().join(nth.to_string());
        let Some(cut) = set(&home, &format!("any#{nth}")).await.cut else { break };
        let again = set(&home, "").await;
        assert!(again.done, "{cut}: {}", again.said);
        let home = Home::at(home).unwrap();
        let objects = std::fs::read_dir(home.secrets().join("lab/token")).unwrap().count();
        assert_eq!(objects, 1, "behind {cut}");
        struck.push(cut);
    }
    assert_eq!(struck, [Effect::FolderMake, Effect::DataKeyMake, Effect::ObjectCreate].map(Effect::as_str));
}

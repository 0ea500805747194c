//! Named points, one behind every effect of the controller, at which a test cuts it off. What a database does in one
//! transaction is one effect.
//!
//! A debug build reads `REPLICATOR_CUT`, written `EFFECT#N`: the process is killed behind the Nth time that effect is
//! done; `any#N` counts all of them. A release build reads nothing.

use replicator_protocol::closed_list;

closed_list! {
    /// Everything the controller does that outlives it; its word is its name in `REPLICATOR_CUT`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    #[allow(missing_docs, reason = "each name says it")]
    pub enum Effect {
        FolderMake = "folder.make",
        FileMake = "file.make",
        FileReplace = "file.replace",
        FileRemove = "file.remove",
        FleetDraft = "fleet.draft",
        FleetPlace = "fleet.place",
        DataKeyMake = "data-key.make",
        ObjectCreate = "object.create",
        AccountPush = "account.push",
        AccountRemove = "account.remove",
        StreamMake = "stream.make",
        StreamUpdate = "stream.update",
        ConsumerMake = "consumer.make",
        MessagePublish = "message.publish",
        BatchAcknowledge = "batch.acknowledge",
        StoreOpen = "store.open",
        StoreAside = "store.aside",
        StoreAgain = "store.again",
        BatchStore = "batch.store",
        HeartbeatKeep = "heartbeat.keep",
        FillKeep = "fill.keep",
        ProjectionsMake = "projections.make",
        ProjectionsFold = "projections.fold",
        EnrolmentStart = "enrolment.start",
        EnrolmentSend = "enrolment.send",
        AgentLog = "agent.log",
        AgentStart = "agent.start",
        AgentNumber = "agent.number",
        AgentEnd = "agent.end",
        AgentAside = "agent.aside",
        AgentForget = "agent.forget",
        UnitWrite = "unit.write",
        UnitRemove = "unit.remove",
        Systemctl = "systemctl",
        BrokerSignal = "broker.signal",
    }
}

/// Passes the point behind `effect`, which has just been done.
pub fn behind(effect: Effect) {
    #[cfg(debug_assertions)]
    cut::strike(effect);
    #[cfg(not(debug_assertions))]
    let _ = effect;
}

#[cfg(debug_assertions)]
mod cut {
    use std::io::Write as _;
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::Effect;

    const VARIABLE: &str = "REPLICATOR_CUT";
    const ANY: &str = "any";

    struct Cut {
        /// Where; `None` for behind every one.
        effect: Option<Effect>,
        left: AtomicU32,
    }

    static CUT: LazyLock<Option<Cut>> = LazyLock::new(|| parse(&std::env::var(VARIABLE).ok()?));

    fn parse(text: &str) -> Option<Cut> {
        let (name, nth) = text.split_once('#')?;
        let effect = Effect::ALL.iter().copied().find(|known| known.as_str() == name);
        let known = effect.is_some() || name == ANY;
        known.then_some(Cut { effect, left: AtomicU32::new(nth.parse().ok()?) })
    }

    pub(super) fn strike(effect: Effect) {
        let Some(cut) = CUT.as_ref().filter(|cut| cut.effect.is_none_or(|wanted| wanted == effect)) else { return };
        if cut.left.fetch_sub(1, Ordering::SeqCst) != 1 {
            return;
        }
        // Whoever asked for it wants to know where it was; as a power cut would, it ends with no destructor run.
        let _unheard = writeln!(std::io::stderr(), "cut off behind `{}`", effect.as_str());
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn cut_names_an_effect_or_any_and_a_count() {
            let cut = parse("object.create#2").unwrap();
            assert_eq!((cut.effect, cut.left.into_inner()), (Some(Effect::ObjectCreate), 2));
            assert_eq!(parse("any#7").unwrap().effect, None);
            for none in ["object.create", "object.remove#1", "any#x", ""] {
                assert!(parse(none).is_none(), "{none}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::Effect;

    /// What does something that outlives the process.
    const EFFECTS: &[&str] = &[
        "fs::write(",
        "fs::rename(",
        "fs::remove_",
        "fs::create_dir",
        "fs::set_permissions(",
        "fs::hard_link(",
        "fs::copy(",
        "File::create",
        "OpenOptions::new(",
        "File::options(",
        "DirBuilder::new(",
        "NamedTempFile::new",
        "tempfile_in(",
        "tempdir_in(",
        ".persist",
        "Beside::write",
        "Command::new(",
        ".spawn()",
        "kill_process(",
        ".put_opts(",
        "context.publish(",
        "client.publish(",
        ".send_publish(",
        " ask(client, uid, UPDATE",
        " ask(client, uid, DELETE",
        ".ack()",
        ".create_stream(",
        ".update_stream(",
        ".create_consumer_on_stream(",
        "Connection::open(",
        ".transaction_with_behavior(",
        ".execute(",
        ".execute_batch(",
    ];
    /// Functions that only make a part of an effect ready; whoever calls them passes the point.
    const PARTS: &[(&str, &str)] = &[
        // A command that is run by `enrol`.
        ("bootstrap/agent.rs", "command"),
        // A file on its way, and its way: whoever uses them says what it is.
        ("beside.rs", "write"),
        ("beside.rs", "replace"),
        ("beside.rs", "place"),
        // A file on its way, which `create` and `replace` have put in its place.
        ("keys/files.rs", "place"),
        // It only reads.
        ("bootstrap/systemd.rs", "own_words"),
        // Within one transaction of `append`, `open` or `catch_up`.
        ("serve/store.rs", "keep"),
        ("serve/store.rs", "note"),
        // A table of the connection's own, which nobody else sees.
        ("serve/store/file.rs", "open_to_read"),
        ("projections/mod.rs", "prepare"),
        ("projections/mod.rs", "forget"),
        ("projections/mod.rs", "fold"),
    ];
    /// Functions in which several calls are one effect, or in which one point stands behind several: how many points fewer
    /// they have.
    const FEWER: &[(&str, &str, usize)] = &[
        // A command that is made ready and then run.
        ("bootstrap/detached.rs", "start", 1),
        // Its `gone` passes one behind each of four.
        ("bootstrap/agent.rs", "forget", 3),
        // A statement of the transaction.
        ("projections/mod.rs", "catch_up", 1),
    ];

    fn sources(folder: &Path) -> Vec<PathBuf> {
        let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        paths.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
    }

    /// The functions of `code` that are no closure, each with its name.
    fn functions(code: &str) -> Vec<(&str, String)> {
        let mut all: Vec<(&str, String)> = Vec::new();
        for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
            let signature = line.trim_start().split_once("fn ").filter(|(before, _)| {
                before.split_whitespace().all(|word| word.starts_with("pub") || word == "async" || word == "const")
            });
            match signature {
                Some((_, name)) => all.push((name.split(['(', '<']).next().unwrap(), String::new())),
                None => all.extend(all.is_empty().then(|| ("", String::new()))),
            }
            let text = &mut all.last_mut().unwrap().1;
            text.push_str(line);
            text.push('\n');
        }
        all
    }

    #[test]
    fn no_effect_is_without_its_point() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let (mut past, mut points) = (Vec::new(), String::new());
        for path in sources(&root) {
            if path.ends_with("tests.rs") || path.ends_with("point.rs") {
                continue;
            }
            let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            points.push_str(code);
            for (function, body) in functions(code) {
                let does: usize = EFFECTS.iter().map(|effect| body.matches(effect).count()).sum();
                let points = body.matches("point::behind(").count();
                if PARTS.contains(&(name.as_str(), function)) {
                    assert!(does > 0, "`{function}` in `{name}` does nothing: take it off the list");
                    continue;
                }
                let fewer = FEWER.iter().find(|(file, of, _)| (*file, *of) == (name.as_str(), function));
                let wanted = does.saturating_sub(fewer.map_or(0, |(_, _, fewer)| *fewer));
                if points < wanted || (fewer.is_some() && points > wanted) {
                    past.push(format!("`{function}` in `{name}`: {does} effects, {points} points"));
                }
            }
        }
        assert!(past.is_empty(), "not one behind each: {past:#?}");
        for effect in Effect::ALL {
            assert!(points.contains(&format!("Effect::{effect:?}")), "no function passes `{}`", effect.as_str());
        }
    }
}

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
mod tests;

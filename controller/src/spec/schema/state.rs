//! `state` and `secrets`: where what must not be lost is kept.

use crate::spec::finding::{Code, Findings};
use crate::spec::read::{Field, Key, key, later_word, word};
use crate::state::App;

/// Where the provisioning log is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// The name it is kept under; never changes after the first run.
    pub app: App,
    /// The place.
    pub backend: Backend,
}

/// Where state and secrets lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// The controller's folder on this machine.
    Local,
}

/// Where `secret:NAME` resolves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secrets {
    /// The store beside the state.
    Replicator,
}

const KEYS: &[Key] = &[key("provider"), key("replicator")];
const REPLICATOR: &[Key] = &[key("accountId"), key("app"), key("backend"), key("region")];
const SECRETS: &[Key] = &[key("provider")];

pub(super) fn read(field: &Field<'_>, findings: &mut Findings) -> Option<State> {
    let block = field.block(KEYS, findings)?;
    let provider = block.require("provider", "replicator", findings);
    let provider = provider.and_then(|field| field.choice(&[word("replicator")], findings));
    let block = block.require("replicator", "{ backend: local }", findings)?;
    let place = block.place;
    let block = block.block(REPLICATOR, findings)?;
    let words = [word("local"), later_word("cloudflare"), later_word("aws")];
    let backend = match block.get("backend") {
        Some(field) => field.choice(&words, findings),
        None => {
            let says = "lacks `state.replicator.backend`, and its default `cloudflare` is not offered by this version";
            findings.fault(Code::NotOffered, place, says, "write `backend: local` there");
            None
        }
    };
    if backend.is_some() {
        for (name, owner) in [("accountId", "cloudflare"), ("region", "aws")] {
            if let Some(field) = block.get(name) {
                let says = format!("has `{}`, which belongs to `backend: {owner}`", field.path);
                findings.fault(Code::Conflict, field.place, says, "remove it: `local` needs no account");
            }
        }
    }
    let app = match block.get("app") {
        Some(field) => field.parsed(App::parse, findings),
        None => App::parse(App::DEFAULT).ok(),
    };
    provider?;
    backend?;
    Some(State { app: app?, backend: Backend::Local })
}

pub(super) fn read_secrets(field: &Field<'_>, findings: &mut Findings) -> Option<Secrets> {
    let block = field.block(SECRETS, findings)?;
    let words = [word("replicator"), later_word("factory-secrets")];
    block.require("provider", "replicator", findings)?.choice(&words, findings)?;
    Some(Secrets::Replicator)
}

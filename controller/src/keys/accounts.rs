//! The broker's accounts: one for each host, and CORE, which alone holds the streams.
//!
//! Hosts share no account: inside one, a host could name another's subject as the reply to its own request
//! and have the server write there. A host's account imports its own subjects and nothing else.

use std::path::PathBuf;

use nkeys::KeyPair;
use replicator_protocol::ids::HostUid;
use replicator_protocol::subjects;
use serde_json::{Value, json};

use super::KeysError;
use super::files::{self, FileError};
use super::jwt::{self, Allowed, UNLIMITED};
use crate::home::FleetFolder;

pub(super) const OPERATOR: &str = "operator";
pub(super) const OPERATOR_SIGNING: &str = "operator-signing";
pub(super) const SYSTEM: &str = "account-system";
pub(super) const CORE: &str = "account-core";

/// Connections of one host: its own, and a new one before the broker has noticed that the old one is dead.
const HOST_CONNECTIONS: i64 = 4;
/// Subscriptions of one host, over all its connections: two wake-ups and an inbox each.
const HOST_SUBSCRIPTIONS: i64 = 32;
/// Largest message of one host, in bytes: the largest envelope.
const HOST_PAYLOAD: usize = replicator_protocol::envelope::ENVELOPE_MAX;

/// The controller's own users of the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Member {
    /// Publishes declarations and reads events.
    Controller,
    /// Consumes events and publishes receipts.
    Collector,
    /// Makes streams, and fills a rebuilt broker.
    Admin,
    /// Pushes accounts.
    System,
}

impl Member {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Controller, Self::Collector, Self::Admin, Self::System];

    /// Its name, and that of its credentials file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Controller => "controller",
            Self::Collector => "collector",
            Self::Admin => "admin",
            Self::System => "sys",
        }
    }

    /// The prefix under which it hears answers.
    pub fn inbox_prefix(self) -> String {
        format!("_INBOX_{}", self.name())
    }

    pub(super) fn allowed(self) -> Allowed {
        let publish: &[&str] = match self {
            Self::Controller => &[subjects::EVERY_DECLARATION, "$JS.API.DIRECT.GET.>"],
            Self::Collector => &[
                subjects::EVERY_RECEIPT,
                "$JS.API.DIRECT.GET.>",
                "$JS.API.CONSUMER.CREATE.EVT.>",
                "$JS.API.CONSUMER.INFO.EVT.>",
                "$JS.API.CONSUMER.MSG.NEXT.EVT.>",
                "$JS.ACK.EVT.>",
            ],
            Self::Admin => {
                &[subjects::EVERY_DECLARATION, subjects::EVERY_RECEIPT, subjects::EVERY_KEYRING, "$JS.API.>"]
            }
            Self::System => &["$SYS.REQ.CLAIMS.UPDATE", "$SYS.REQ.CLAIMS.DELETE", "$SYS.REQ.ACCOUNT.*.CLAIMS.LOOKUP"],
        };
        let heard: &[&str] = match self {
            Self::Controller => &[subjects::EVERY_EVENT, subjects::EVERY_RECEIPT],
            Self::Collector => &[subjects::EVERY_EVENT, subjects::EVERY_HEARTBEAT],
            Self::Admin | Self::System => &[],
        };
        let own = |text: &&str| (*text).to_owned();
        let mut subscribe: Vec<String> = heard.iter().map(own).collect();
        subscribe.push(format!("{}.>", self.inbox_prefix()));
        Allowed { publish: publish.iter().map(own).collect(), subscribe }
    }
}

/// The text `member` connects with: its JWT and its seed.
///
/// # Errors
///
/// [`KeysError::File`] where it is absent or others can read it.
pub fn credentials(fleet: &FleetFolder, member: Member) -> Result<zeroize::Zeroizing<String>, KeysError> {
    let path = fleet.credentials().join(member.name());
    let bytes = files::read_private(&path)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| KeysError::Malformed { path, want: "a credential" })?;
    Ok(zeroize::Zeroizing::new(text.to_owned()))
}

/// The file of the NATS key `name`.
pub(super) fn path(fleet: &FleetFolder, name: &str) -> PathBuf {
    fleet.keys().join("broker").join(name)
}

/// Keeps a new NATS key as its seed.
pub(super) fn keep(fleet: &FleetFolder, name: &str, pair: &KeyPair) -> Result<(), KeysError> {
    let seed = zeroize::Zeroizing::new(pair.seed().map_err(KeysError::Nkey)?);
    Ok(files::create(&path(fleet, name), seed.as_bytes())?)
}

/// Loads the NATS key `name`.
pub(super) fn load(fleet: &FleetFolder, name: &str) -> Result<KeyPair, KeysError> {
    let path = path(fleet, name);
    let bytes = files::read_private(&path)?;
    let seed = std::str::from_utf8(&bytes).map_err(|_| KeysError::Malformed { path, want: "a seed" })?;
    KeyPair::from_seed(seed.trim()).map_err(KeysError::Nkey)
}

/// Limits of an account. NATS reads an absent number as none at all, so each one is said.
fn limits(subscriptions: i64, payload: i64, imports: i64, connections: i64, streams: i64) -> Value {
    json!({
        "subs": subscriptions, "data": UNLIMITED, "payload": payload,
        "imports": imports, "exports": if streams == 0 { 0 } else { UNLIMITED }, "wildcards": streams != 0,
        "conn": connections, "leaf": 0, "disallow_bearer": true,
        "mem_storage": streams, "disk_storage": streams, "streams": streams, "consumer": streams,
    })
}

pub(super) fn system_claims() -> Value {
    json!({
        "type": "account", "version": 2,
        "limits": limits(UNLIMITED, UNLIMITED, 0, UNLIMITED, 0),
        "default_permissions": { "pub": {}, "sub": {} },
    })
}

/// CORE's claims: the streams, and one public export for each thing a host may do.
///
/// Public exports suffice: only the operator's key makes an account that could import them.
pub(super) fn core_claims() -> Value {
    let service = |subject: &str| json!({ "name": subject, "subject": subject, "type": "service" });
    let stream = |subject: &str| json!({ "name": subject, "subject": subject, "type": "stream" });
    let get = |stream: &str, subject: &str| service(&subjects::direct_get(stream, subject));
    json!({
        "type": "account", "version": 2,
        "limits": limits(UNLIMITED, UNLIMITED, 0, UNLIMITED, UNLIMITED),
        "default_permissions": { "pub": {}, "sub": {} },
        "exports": [
            service(subjects::EVERY_EVENT),
            service(subjects::EVERY_HEARTBEAT),
            get(subjects::DECLARATIONS, subjects::EVERY_DECLARATION),
            get(subjects::RECEIPTS, subjects::EVERY_RECEIPT),
            get(subjects::KEYRINGS, subjects::EVERY_KEYRING),
            stream(subjects::EVERY_DECLARATION),
            stream(subjects::EVERY_KEYRING),
        ],
    })
}

/// What a host's account imports from `core`: its own subjects and the keyrings.
fn host_claims(host: &HostUid, core: &str) -> Value {
    let import =
        |subject: String, kind: &str| json!({ "name": subject, "subject": subject, "account": core, "type": kind });
    let get = |stream: &str, subject: &str| import(subjects::direct_get(stream, subject), "service");
    let imports = [
        import(subjects::events(host), "service"),
        import(subjects::heartbeat(host), "service"),
        get(subjects::DECLARATIONS, &subjects::declaration(host)),
        get(subjects::RECEIPTS, &subjects::receipt(host)),
        get(subjects::KEYRINGS, subjects::EVERY_KEYRING),
        import(subjects::declaration(host), "stream"),
        import(subjects::EVERY_KEYRING.to_owned(), "stream"),
    ];
    let count = i64::try_from(imports.len()).unwrap_or(UNLIMITED);
    let payload = i64::try_from(HOST_PAYLOAD).unwrap_or(UNLIMITED);
    json!({
        "type": "account", "version": 2,
        "limits": limits(HOST_SUBSCRIPTIONS, payload, count, HOST_CONNECTIONS, 0),
        "default_permissions": { "pub": {}, "sub": {} },
        "imports": imports,
    })
}

/// What a host's user may do inside its account.
fn host_allowed(host: &HostUid) -> Allowed {
    Allowed {
        publish: vec![
            subjects::events(host),
            subjects::heartbeat(host),
            subjects::direct_get(subjects::DECLARATIONS, &subjects::declaration(host)),
            subjects::direct_get(subjects::RECEIPTS, &subjects::receipt(host)),
            subjects::direct_get(subjects::KEYRINGS, subjects::EVERY_KEYRING),
        ],
        subscribe: vec![
            subjects::declaration(host),
            subjects::EVERY_KEYRING.to_owned(),
            format!("{}.>", subjects::inbox_prefix(host)),
        ],
    }
}

/// A host's account and its one user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostAccount {
    /// The account's public key, `A…`.
    pub id: String,
    /// What is pushed to the broker.
    pub account_jwt: String,
    /// What the host connects with, beside its own key. No secret.
    pub user_jwt: String,
}

/// Makes, or finds, the account of `host`, and a user in it with the key `nats_key` (`U…`).
///
/// The account's key and JWT are on disk when this returns; the broker knows nothing of it yet. `now` in
/// seconds since the Unix epoch.
///
/// # Errors
///
/// [`KeysError`]; an account that was there is as it was.
pub fn host_account(fleet: &FleetFolder, host: &HostUid, nats_key: &str, now: u64) -> Result<HostAccount, KeysError> {
    let user = KeyPair::from_public_key(nats_key).map_err(KeysError::Nkey)?;
    let name = format!("hosts/{host}");
    let pair = match load(fleet, &name) {
        Ok(pair) => pair,
        Err(KeysError::File(FileError::System { source, .. })) if source.kind() == std::io::ErrorKind::NotFound => {
            let pair = KeyPair::new_account();
            keep(fleet, &name, &pair)?;
            pair
        }
        Err(error) => return Err(error),
    };
    let (signing, core) = (load(fleet, OPERATOR_SIGNING)?, load(fleet, CORE)?);
    let id = pair.public_key();
    let account_jwt = jwt::sign(&signing, &id, host.as_str(), now, host_claims(host, &core.public_key()))?;
    let user_jwt = jwt::sign(&pair, &user.public_key(), host.as_str(), now, jwt::user(&host_allowed(host)))?;
    files::replace(&kept(fleet, host), account_jwt.as_bytes())?;
    // Of a withdrawal that a restored log knows nothing of.
    files::remove(&withdrawal(fleet, host))?;
    Ok(HostAccount { id, account_jwt, user_jwt })
}

fn kept(fleet: &FleetFolder, host: &HostUid) -> PathBuf {
    fleet.root().join("hosts").join(format!("{host}.account"))
}

fn withdrawal(fleet: &FleetFolder, host: &HostUid) -> PathBuf {
    fleet.root().join("hosts").join(format!("{host}.withdrawn"))
}

/// Every host account that was made, with its public key and JWT: what a rebuilt broker is given again.
///
/// # Errors
///
/// [`KeysError`].
pub fn kept_accounts(fleet: &FleetFolder) -> Result<Vec<(HostUid, String, String)>, KeysError> {
    let mut accounts = Vec::new();
    for name in files::names(&fleet.root().join("hosts"), "account")? {
        let Ok(host) = HostUid::parse(&name) else { continue };
        let path = kept(fleet, &host);
        let Some(token) = files::read(&path)? else { continue };
        let token = String::from_utf8_lossy(&token).into_owned();
        let malformed = || KeysError::Malformed { path: path.clone(), want: "the token of an account" };
        // Whose it is, it says itself: its private key is not needed to push it.
        let id = jwt::subject(&token).ok_or_else(malformed)?;
        accounts.push((host, id, token));
    }
    Ok(accounts)
}

/// What tells the broker to forget the account `id`: a request of the operator about itself.
///
/// # Errors
///
/// [`KeysError`].
pub fn removal(fleet: &FleetFolder, id: &str, now: u64) -> Result<String, KeysError> {
    let signing = load(fleet, OPERATOR_SIGNING)?;
    jwt::sign(
        &signing,
        &signing.public_key(),
        "remove",
        now,
        json!({ "accounts": [id], "type": "generic", "version": 2 }),
    )
}

/// Withdraws the account of `host`: nothing pushes it again. Until it is forgotten its key is still known, to have it
/// removed by, and it is among the [`withdrawn`].
///
/// # Errors
///
/// [`KeysError`]; withdraw it again.
pub fn withdraw(fleet: &FleetFolder, host: &HostUid) -> Result<(), KeysError> {
    let withdrawal = withdrawal(fleet, host);
    if files::read(&withdrawal)?.is_none() {
        files::replace(&withdrawal, b"")?;
    }
    Ok(files::remove(&kept(fleet, host))?)
}

/// Every host whose account was withdrawn and is not forgotten: the broker may hold it still.
///
/// # Errors
///
/// [`KeysError`].
pub fn withdrawn(fleet: &FleetFolder) -> Result<Vec<HostUid>, KeysError> {
    let mut hosts = Vec::new();
    for name in files::names(&fleet.root().join("hosts"), "withdrawn")? {
        let Ok(host) = HostUid::parse(&name) else { continue };
        // One that was not withdrawn to the end is pushed yet.
        if !is_kept(fleet, &host)? {
            hosts.push(host);
        }
    }
    Ok(hosts)
}

/// Whether `host` has an account that was not withdrawn.
///
/// # Errors
///
/// [`KeysError`].
pub fn is_kept(fleet: &FleetFolder, host: &HostUid) -> Result<bool, KeysError> {
    Ok(files::read(&kept(fleet, host))?.is_some())
}

/// Whether `host` has an account that was not forgotten, withdrawn or not.
///
/// # Errors
///
/// [`KeysError`].
pub fn is_known(fleet: &FleetFolder, host: &HostUid) -> Result<bool, KeysError> {
    Ok(files::exists(&path(fleet, &format!("hosts/{host}")))?)
}

/// Forgets the account of `host` on this side, with its key. Cut off, it is withdrawn.
///
/// # Errors
///
/// [`KeysError`].
pub fn forget(fleet: &FleetFolder, host: &HostUid) -> Result<(), KeysError> {
    files::remove(&kept(fleet, host))?;
    files::remove(&path(fleet, &format!("hosts/{host}")))?;
    Ok(files::remove(&withdrawal(fleet, host))?)
}

/// The public key of `host`'s account; `None` where it has none, or it was forgotten.
///
/// # Errors
///
/// [`KeysError`].
pub fn id(fleet: &FleetFolder, host: &HostUid) -> Result<Option<String>, KeysError> {
    match load(fleet, &format!("hosts/{host}")) {
        Ok(pair) => Ok(Some(pair.public_key())),
        Err(KeysError::File(FileError::System { source, .. })) if source.kind() == std::io::ErrorKind::NotFound => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> HostUid {
        HostUid::parse(&"a".repeat(32)).unwrap()
    }

    #[test]
    fn host_imports_its_own_subjects_and_the_keyrings_alone() {
        let claims = host_claims(&host(), "ACORE");
        let imports = claims["imports"].as_array().unwrap();
        assert_eq!(imports.len(), 7);
        for import in imports {
            let subject = import["subject"].as_str().unwrap();
            assert!(subject.ends_with(host().as_str()) || subject.ends_with("keyring.*"), "{subject}");
        }
        assert_eq!(claims["limits"]["streams"], 0);
        assert_eq!(claims["limits"]["exports"], 0);
        assert_eq!(claims["limits"]["disk_storage"], 0);
    }

    #[test]
    fn withdrawn_account_is_pushed_by_nobody_and_known_until_it_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let home = crate::home::Home::at(folder.path().join("home")).unwrap();
        let fleet = home.fleet(&replicator_protocol::ids::FleetName::parse("demo").unwrap());
        let operator = KeyPair::new_operator();
        keep(&fleet, OPERATOR_SIGNING, &operator).unwrap();
        keep(&fleet, CORE, &KeyPair::new_account()).unwrap();
        let user = KeyPair::new_user().public_key();
        let made = host_account(&fleet, &host(), &user, 0).unwrap();
        let pushed = || kept_accounts(&fleet).unwrap().into_iter().map(|(_, id, _)| id).collect::<Vec<_>>();
        assert_eq!((pushed(), withdrawn(&fleet).unwrap()), (vec![made.id.clone()], vec![]));

        // Cut off half-way: it is not withdrawn, and is then.
        files::replace(&withdrawal(&fleet, &host()), b"").unwrap();
        assert_eq!((pushed(), withdrawn(&fleet).unwrap()), (vec![made.id.clone()], vec![]));
        for _ in 0..2 {
            withdraw(&fleet, &host()).unwrap();
            assert_eq!((pushed(), withdrawn(&fleet).unwrap()), (vec![], vec![host()]));
            assert_eq!(id(&fleet, &host()).unwrap().as_ref(), Some(&made.id));
        }
        // Cut off half-way: whoever comes next forgets it to the end.
        files::remove(&path(&fleet, &format!("hosts/{}", host()))).unwrap();
        assert_eq!(withdrawn(&fleet).unwrap(), [host()]);
        forget(&fleet, &host()).unwrap();
        assert_eq!((pushed(), withdrawn(&fleet).unwrap()), (vec![], vec![]));

        // Made again, it is withdrawn no more.
        withdraw(&fleet, &host()).unwrap();
        let again = host_account(&fleet, &host(), &user, 0).unwrap();
        assert_eq!((pushed(), withdrawn(&fleet).unwrap()), (vec![again.id], vec![]));
    }

    #[test]
    fn host_user_names_no_wildcard_beyond_keyrings_and_its_inbox() {
        let allowed = host_allowed(&host());
        for subject in allowed.publish.iter().chain(&allowed.subscribe) {
            let wide = subject.contains('*') || subject.contains('>');
            let known = subject.ends_with("keyring.*") || *subject == format!("_INBOX_{}.>", host());
            assert!(!wide || known, "{subject}");
        }
    }

    #[test]
    fn no_member_may_delete_what_hosts_said() {
        for member in [Member::Controller, Member::Collector] {
            for subject in member.allowed().publish {
                // Nor be told how streams are kept: that is the administrator's.
                let words = ["DELETE", "PURGE", "UPDATE", "STREAM.INFO"];
                assert!(!words.iter().any(|word| subject.contains(word)), "{subject}");
                assert_ne!(subject, "$JS.API.>");
            }
        }
    }
}

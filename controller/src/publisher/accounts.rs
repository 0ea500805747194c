//! Host accounts at the broker: pushed, compared and removed as it runs, without a reload.

use std::time::Duration;

use async_nats::Client;
use nkeys::{KeyPair, KeyPairType};
use replicator_protocol::ids::HostUid;
use serde_json::Value;

use crate::home::FleetFolder;
use crate::keys::KeysError;
use crate::keys::accounts::{self, Member};
use crate::link::{self, LinkError};
use crate::point::{self, Effect};
use crate::state;
use crate::words::chain_of;

/// How long the broker may take to answer about an account.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
const UPDATE: &str = "$SYS.REQ.CLAIMS.UPDATE";
const DELETE: &str = "$SYS.REQ.CLAIMS.DELETE";

/// A host's account could not be pushed or removed.
#[derive(Debug, thiserror::Error)]
pub enum AccountsError {
    /// A key or token could not be had; the broker was not asked.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// The broker cannot be reached.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The broker did not answer; whether it did it is unknown.
    #[error("the broker gave no answer about the account of host `{uid}`")]
    Silent {
        /// Whose.
        uid: HostUid,
        /// Why.
        source: async_nats::RequestError,
    },
    /// The host's broker key is none.
    #[error("the broker key of host `{uid}` is not the public key of a user")]
    NotAUser {
        /// Whose.
        uid: HostUid,
    },
    /// The broker refused.
    #[error("the broker refuses the account of host `{uid}`: {said}")]
    Refused {
        /// Whose.
        uid: HostUid,
        /// What it said.
        said: String,
    },
}

impl AccountsError {
    /// One line that names the next action.
    pub fn hint(&self) -> String {
        match self {
            Self::Keys(error) => error.hint(),
            Self::Link(error) => error.hint(),
            Self::NotAUser { .. } => "enrol the host again".into(),
            Self::Silent { .. } => "run the command again: pushing an account twice is the same as once".into(),
            Self::Refused { .. } => {
                "start the broker with the `nats.conf` of this fleet; another fleet's broker may listen there".into()
            }
        }
    }
}

/// Gives the host an account of its own, pushes it to the broker, and returns the token that admits the broker
/// key `nats_key` (`U…`) to it. The token has no end; [`withdraw`] and [`remove_host`] are the end.
///
/// Twice gives the same account.
///
/// # Errors
///
/// [`AccountsError`]; run it again.
pub async fn admit_host(folder: &FleetFolder, uid: &HostUid, nats_key: &str) -> Result<String, AccountsError> {
    let is_user = KeyPair::from_public_key(nats_key).is_ok_and(|pair| pair.key_pair_type() == KeyPairType::User);
    if !is_user {
        return Err(AccountsError::NotAUser { uid: uid.clone() });
    }
    let account = accounts::host_account(folder, uid, nats_key, state::now() / 1000)?;
    let client = connect(folder).await?;
    push(&client, uid, &account.account_jwt).await?;
    // The first who reaches the broker tells it what it could not be told before. This host is admitted all the same.
    if let Err(error) = remove_withdrawn(folder, &client).await {
        tracing::warn!(error = %chain_of(&error), "the account of a retired host was not removed from the broker");
    }
    Ok(account.user_jwt)
}

/// Connects to the broker as the one who may remove accounts.
///
/// # Errors
///
/// [`AccountsError::Link`].
pub async fn connect(folder: &FleetFolder) -> Result<Client, AccountsError> {
    Ok(link::connect(folder, Member::System).await?)
}

/// Withdraws the host's account, where it has one: it is no account any more that anybody would push, and
/// [`remove_withdrawn`] has the broker remove it.
///
/// # Errors
///
/// [`AccountsError::Keys`]; run it again.
pub fn withdraw(folder: &FleetFolder, uid: &HostUid) -> Result<(), AccountsError> {
    if accounts::is_known(folder, uid)? { Ok(accounts::withdraw(folder, uid)?) } else { Ok(()) }
}

/// Ends the account of every host that was withdrawn, as [`remove_host`] does. Returns whose.
///
/// # Errors
///
/// [`AccountsError`]; those before it are gone, and the others stay withdrawn. Run it again.
pub async fn remove_withdrawn(folder: &FleetFolder, client: &Client) -> Result<Vec<HostUid>, AccountsError> {
    let withdrawn = accounts::withdrawn(folder)?;
    for uid in &withdrawn {
        remove_host(folder, client, uid).await?;
    }
    Ok(withdrawn)
}

/// Ends the withdrawn account of a host: what is connected through it is cut off, and its key is forgotten.
///
/// # Errors
///
/// [`AccountsError`]; it stays withdrawn. Run it again.
pub async fn remove_host(folder: &FleetFolder, client: &Client, uid: &HostUid) -> Result<(), AccountsError> {
    // Where its key is gone the broker was asked already.
    if let Some(id) = accounts::id(folder, uid)? {
        remove(folder, client, uid, &id).await?;
    }
    Ok(accounts::forget(folder, uid)?)
}

/// Removes the account `id` from the broker, where it is there.
async fn remove(folder: &FleetFolder, client: &Client, uid: &HostUid, id: &str) -> Result<(), AccountsError> {
    // The broker refuses to remove what it does not hold.
    if held(client, uid, id).await?.is_empty() {
        return Ok(());
    }
    match ask(client, uid, DELETE.into(), accounts::removal(folder, id, state::now() / 1000)?).await {
        // Somebody else was first: `serve` removes what is withdrawn, too.
        Err(AccountsError::Refused { .. }) if held(client, uid, id).await?.is_empty() => return Ok(()),
        asked => asked?,
    }
    point::behind(Effect::AccountRemove);
    Ok(())
}

/// The account `id` as the broker holds it; empty where it does not.
async fn held(client: &Client, uid: &HostUid, id: &str) -> Result<bytes::Bytes, AccountsError> {
    request(client, uid, format!("$SYS.REQ.ACCOUNT.{id}.CLAIMS.LOOKUP"), String::new()).await
}

/// Pushes every host account kept in `folder` that the broker does not hold as it lies here; returns whose.
///
/// # Errors
///
/// [`AccountsError`]; those before it are pushed.
pub async fn push_missing(folder: &FleetFolder, client: &Client) -> Result<Vec<HostUid>, AccountsError> {
    let mut pushed = Vec::new();
    for (uid, id, token) in accounts::kept_accounts(folder)? {
        if held(client, &uid, &id).await? == token.as_bytes() {
            continue;
        }
        push(client, &uid, &token).await?;
        if accounts::is_kept(folder, &uid)? {
            pushed.push(uid);
        } else {
            // Withdrawn meanwhile, and perhaps removed just before it was pushed: no retired host comes back.
            remove(folder, client, &uid, &id).await?;
        }
    }
    Ok(pushed)
}

async fn push(client: &Client, uid: &HostUid, token: &str) -> Result<(), AccountsError> {
    ask(client, uid, UPDATE.into(), token.to_owned()).await?;
    point::behind(Effect::AccountPush);
    Ok(())
}

/// Sends `body` and expects the broker's yes.
async fn ask(client: &Client, uid: &HostUid, subject: String, body: String) -> Result<(), AccountsError> {
    let answer = request(client, uid, subject, body).await?;
    let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
    if answer["data"]["code"] == 200 {
        return Ok(());
    }
    let said = [&answer["error"]["description"], &answer["data"]["message"]].into_iter().find_map(Value::as_str);
    let said = said.unwrap_or("no reason given").to_owned();
    Err(AccountsError::Refused { uid: uid.clone(), said })
}

async fn request(client: &Client, uid: &HostUid, subject: String, body: String) -> Result<bytes::Bytes, AccountsError> {
    let request = async_nats::Request::new().payload(body.into()).timeout(Some(ANSWER_TIMEOUT));
    let answer = client.send_request(subject, request).await;
    Ok(answer.map_err(|source| AccountsError::Silent { uid: uid.clone(), source })?.payload)
}

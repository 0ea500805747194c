//! What a host reported since its log was written to last: mended by itself, or applied after nobody waited any more.
//!
//! Comes in: what the collector on this machine stored, and what the broker holds; both signed by the host. Goes out:
//! the entries that bring the log up to date. A converge appends them; a plan only supposes them.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use replicator_protocol::ids::{HostUid, Position};
use replicator_protocol::wire::event::event::Body;
use replicator_protocol::wire::event::{ApplyReported, Event as HostEvent, EventBatch};

use crate::publisher::{PublishError, Publisher, position_of};
use crate::serve::{Store, StoreError, chain};
use crate::state::event::Said;
use crate::state::status::Reported;
use crate::state::{Event, HostState};

/// How long the broker is asked: it holds at most some thousand batches of a host, each one answer.
const ASK_WITHIN: Duration = Duration::from_secs(10);
/// Events read from the store at once.
const PAGE: u32 = 1000;

/// One report of a host.
#[derive(Debug, Clone, PartialEq)]
pub struct Heard {
    position: Position,
    report: ApplyReported,
    said: Said,
}

/// What a host reported, as far as it could be asked for.
#[derive(Debug, Default)]
pub struct Since {
    /// In the order the host said it.
    heard: Vec<Heard>,
    /// Why newer reports may be missing: who could not be asked, and why.
    pub unheard: Vec<String>,
}

impl Since {
    /// Asks the collector's store, where it is on this machine, and then the broker, for what the host of `state`
    /// reported. Nothing is asked of a host that was never admitted.
    pub async fn ask(
        state: &HostState,
        store: Result<&Store, &StoreError>,
        broker: Result<&Publisher, &PublishError>,
    ) -> Self {
        let mut since = Self::default();
        let (Some((_, uid)), Some(_)) = (&state.identity, &state.certificate) else { return since };
        let store = match store {
            Ok(store) => Some(store),
            Err(StoreError::Absent { .. }) => None,
            Err(error) => {
                since.missed(error);
                None
            }
        };
        if let Some(store) = store
            && let Err(error) = since.stored(store, state, uid)
        {
            since.missed(&error);
        }
        match broker {
            Err(error) => since.missed(error),
            Ok(broker) => match tokio::time::timeout(ASK_WITHIN, since.held(broker, store, uid)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => since.missed(&error),
                Err(_) => since.missed(&Late(ASK_WITHIN.as_secs())),
            },
        }
        since
    }

    fn missed(&mut self, error: &dyn std::error::Error) {
        self.unheard.push(error.to_string());
    }

    /// From the store, which verified it when it came: what follows the last report known.
    fn stored(&mut self, store: &Store, state: &HostState, uid: &HostUid) -> Result<(), StoreError> {
        let last = state.reported.as_ref().and_then(|reported| reported.said.as_ref());
        let known = last.map(|said| store.position(uid, &said.chain.0, said.number)).transpose()?;
        let mut position = known.flatten().unwrap_or(0);
        loop {
            let page = store.events_after(position, Some(uid), PAGE)?;
            let Some(last) = page.last() else { return Ok(()) };
            position = last.position;
            self.heard.extend(page.into_iter().filter_map(|stored| heard(stored.event)));
        }
    }

    /// From the broker: what has not come to the store, or cannot, since it is elsewhere.
    async fn held(&mut self, broker: &Publisher, store: Option<&Store>, uid: &HostUid) -> Result<(), PublishError> {
        let linked = |batch: &EventBatch| chain::linked(batch, uid).ok().map(|(_, linked)| linked);
        let stored = |event: &HostEvent| {
            let found = store.map(|store| store.position(uid, &event.chain, event.number));
            matches!(found, Some(Ok(Some(_))))
        };
        // Where the store has the last of it, it has all of it.
        let last = broker.last_batch(uid).await?.and_then(|batch| linked(&batch)?.pop());
        if last.is_none_or(|last| stored(&last.event)) {
            return Ok(());
        }
        let mut seen: BTreeSet<(Bytes, u64)> = BTreeSet::new();
        let mut told = |batch: &EventBatch| {
            let events = linked(batch).unwrap_or_default().into_iter().map(|linked| linked.event);
            // A batch that came twice, under two names, counts once.
            let new = events.filter(|event| seen.insert((event.chain.clone(), event.number)) && !stored(event));
            self.heard.extend(new.filter_map(heard));
        };
        broker.batches(uid, &mut told).await
    }

    /// The entries that bring a log up to date whose state is `state`: of all that was heard, the reports without
    /// which what is known would be another thing, and the last one.
    #[must_use]
    pub fn entries(&self, state: &HostState) -> Vec<Event> {
        let last = state.reported.as_ref().and_then(|reported| reported.said.as_ref());
        let is_known = |heard: &Heard, last: &Said| heard.said.chain == last.chain && heard.said.number <= last.number;
        let known = last.and_then(|last| self.heard.iter().rposition(|heard| is_known(heard, last)));
        let mut state = state.clone();
        let mut entries: Vec<(Event, bool)> = Vec::new();
        for heard in self.heard.iter().skip(known.map_or(0, |at| at + 1)) {
            let Heard { position, report, said } = heard.clone();
            let event = Event::apply_seen(position, &report, said.clone());
            let before = state.known.clone();
            // On a declaration that an earlier controller issued, or that a later report has passed by.
            let Ok(after) = state.clone().after_report(Reported { position, report, at: said.at, said: Some(said) })
            else {
                continue;
            };
            entries.push((event, after.known != before));
            state = after;
        }
        let last = entries.len().saturating_sub(1);
        let needed = entries.into_iter().enumerate().filter(|(at, (_, changes))| *changes || *at == last);
        needed.map(|(_, (event, _))| event).collect()
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the broker took longer than {0} s")]
struct Late(u64);

fn heard(event: HostEvent) -> Option<Heard> {
    let said = Said::of(&event);
    let position = position_of(&event)?;
    match event.body? {
        Body::ApplyReported(report) => Some(Heard { position, report, said }),
        Body::ChainStarted(_)
        | Body::AgentStarted(_)
        | Body::Enrolled(_)
        | Body::DeclarationAccepted(_)
        | Body::DeclarationRefused(_)
        | Body::DeclarationSuperseded(_)
        | Body::Equivocation(_)
        | Body::StepsPlanned(_)
        | Body::StepFinished(_)
        | Body::DriftFound(_)
        | Body::KeyringAccepted(_)
        | Body::LedgerSetAside(_)
        | Body::LedgerRotated(_)
        | Body::LedgerDropped(_)
        | Body::LedgerPutBack(_)
        | Body::RecordRecovered(_)
        | Body::ClockFault(_)
        | Body::OriginalKept(_)
        | Body::EnrolmentRefused(_) => None,
    }
}

#[cfg(test)]
mod tests;

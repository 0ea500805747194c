//! Waiting for what a host reports on a declaration, as it said it: verified under its identity key.

use std::time::{Duration, Instant};

use async_nats::jetstream::stream::DirectGetErrorKind;
use bytes::Bytes;
use replicator_protocol::envelope::{Unverified, verify};
use replicator_protocol::ids::{HostUid, Position};
use replicator_protocol::refusal::{Code, Refusal};
use replicator_protocol::strict;
use replicator_protocol::subjects;
use replicator_protocol::wire::event::event::Body;
use replicator_protocol::wire::event::{ApplyReported, DeclarationRefused, Event, EventBatch};

use super::{PublishError, Publisher, Sent};
use crate::keys::certificates::{self, Certified};
use crate::state::event::Said;

/// How often the broker is asked for the host's next batch: soon enough for a person to see steps as they come.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// How long the broker may not answer before the wait ends: a restart of it, and its streams read, take less.
const READ_WITHIN: Duration = Duration::from_secs(60);

/// How the host took a declaration.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It was applied as far as the report says, which the host said there.
    Applied(ApplyReported, Said),
    /// The host refused it whole.
    Refused(DeclarationRefused),
    /// The host has another declaration of that number; it applied neither.
    Equivocation,
    /// A later declaration took its place before it was applied.
    Superseded,
}

/// What the host said on the way there, one event at a time.
pub type Progress<'p> = dyn FnMut(&Event) + Send + 'p;

impl Publisher {
    /// Waits up to `timeout` for what `uid` reports on the declaration at `position`, which was `sent`.
    ///
    /// `progress` sees each event of that declaration as it comes.
    ///
    /// # Errors
    ///
    /// [`PublishError::NoReport`] in time; [`PublishError::NotAdmitted`],
    /// [`PublishError::Unreadable`] once the broker gave no answer for a minute.
    pub async fn wait_for_report(
        &self,
        uid: &HostUid,
        position: Position,
        sent: &Sent,
        timeout: Duration,
        progress: &mut Progress<'_>,
    ) -> Result<Outcome, PublishError> {
        let host = self.certified(uid)?;
        let subject = subjects::events(uid);
        let stream = self.stream(subjects::EVENTS, &subject).await?;
        let (start, mut next) = (Instant::now(), sent.after + 1);
        let mut failing: Option<Instant> = None;
        while start.elapsed() < timeout {
            let message = match stream.direct_get_next_for_subject(subject.as_str(), Some(next)).await {
                Ok(message) => message,
                Err(error) if error.kind() == DirectGetErrorKind::NotFound => {
                    failing = None;
                    tokio::time::sleep(LOOK_EVERY).await;
                    continue;
                }
                Err(source) => {
                    // The host reports all the same, and the connection is made again by itself.
                    let since = *failing.get_or_insert_with(|| {
                        tracing::warn!(error = %source, "the broker cannot be asked for the report; trying again");
                        Instant::now()
                    });
                    if since.elapsed() >= READ_WITHIN {
                        return Err(PublishError::Unreadable { subject, source });
                    }
                    tokio::time::sleep(LOOK_EVERY).await;
                    continue;
                }
            };
            failing = None;
            next = message.sequence + 1;
            // One that is not believed says nothing, and keeps nobody from hearing what comes after it.
            let events = believed(message.payload, &host).and_then(|batch| told(events(&batch, uid), &host));
            for event in events.unwrap_or_default() {
                let at = position_of(&event);
                if at == Some(position) {
                    progress(&event);
                }
                if let Some(outcome) = outcome(event, at, position, sent) {
                    return Ok(outcome);
                }
            }
        }
        Err(PublishError::NoReport { sequence: position.sequence, seconds: timeout.as_secs() })
    }

    /// The batch of `uid` that the broker took last; none where it is not believed.
    ///
    /// # Errors
    ///
    /// [`PublishError::NotAdmitted`], [`PublishError::Unreadable`].
    pub async fn last_batch(&self, uid: &HostUid) -> Result<Option<EventBatch>, PublishError> {
        let host = self.certified(uid)?;
        let last = self.last(subjects::EVENTS, &subjects::events(uid)).await?;
        Ok(last.and_then(|(_, payload)| believed(payload, &host)))
    }

    /// Tells of every batch of `uid` that the broker holds, oldest first. One that is not believed is left out.
    ///
    /// # Errors
    ///
    /// [`PublishError::NotAdmitted`], [`PublishError::Unreadable`].
    pub async fn batches(&self, uid: &HostUid, told: &mut (dyn FnMut(&EventBatch) + Send)) -> Result<(), PublishError> {
        let host = self.certified(uid)?;
        let subject = subjects::events(uid);
        let stream = self.stream(subjects::EVENTS, &subject).await?;
        let mut next = 1;
        loop {
            match stream.direct_get_next_for_subject(subject.as_str(), Some(next)).await {
                Ok(message) => {
                    next = message.sequence + 1;
                    believed(message.payload, &host).iter().for_each(&mut *told);
                }
                Err(error) if error.kind() == DirectGetErrorKind::NotFound => return Ok(()),
                Err(source) => return Err(PublishError::Unreadable { subject, source }),
            }
        }
    }

    fn certified(&self, uid: &HostUid) -> Result<Certified, PublishError> {
        let host = certificates::load(&self.folder, uid, &self.keyrings.current)?;
        host.ok_or_else(|| PublishError::NotAdmitted { uid: uid.clone() })
    }
}

/// The batch in `payload`, where the host signed it.
fn believed(payload: Bytes, host: &Certified) -> Option<EventBatch> {
    told(verify::<EventBatch>(&Unverified::new(payload), host), host).map(|batch| (*batch).clone())
}

/// What is believed; what is not is told of.
fn told<T>(believed: Result<T, Refusal>, host: &Certified) -> Option<T> {
    let warn = |refusal: &Refusal| {
        tracing::warn!(uid = host.certificate.uid, %refusal, "a batch of events is not believed");
    };
    believed.inspect_err(warn).ok()
}

/// The declaration `event` belongs to.
pub fn position_of(event: &Event) -> Option<Position> {
    event.declaration.as_ref().map(|of| Position { epoch: of.epoch, sequence: of.sequence })
}

/// What `event`, which belongs to the declaration `at`, says of the one at `position`.
fn outcome(event: Event, at: Option<Position>, position: Position, sent: &Sent) -> Option<Outcome> {
    let ours = at == Some(position);
    let said = Said::of(&event);
    match event.body? {
        // One that was cut off is no end: the agent goes on with it, or with what came after.
        Body::ApplyReported(report) if ours => report.complete.then_some(Outcome::Applied(report, said)),
        Body::ApplyReported(_) => at.is_some_and(|at| at > position).then_some(Outcome::Superseded),
        // Of what it refused a host believes nothing, so that it names the envelope alone.
        Body::DeclarationRefused(refused) => {
            (refused.envelope == sent.envelope.0[..]).then_some(Outcome::Refused(refused))
        }
        Body::Equivocation(_) => ours.then_some(Outcome::Equivocation),
        Body::DeclarationSuperseded(skipped) => {
            let within = (skipped.first..=skipped.last).contains(&position.sequence);
            (within && at.is_some_and(|at| at.epoch == position.epoch)).then_some(Outcome::Superseded)
        }
        Body::ChainStarted(_)
        | Body::AgentStarted(_)
        | Body::Enrolled(_)
        | Body::DeclarationAccepted(_)
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

/// The events of a verified batch of `uid`, each one its own.
fn events(batch: &EventBatch, uid: &HostUid) -> Result<Vec<Event>, Refusal> {
    let events = batch.events.iter().map(|bytes| strict::decode::<Event>(bytes)).collect::<Result<Vec<_>, _>>()?;
    let ours = |event: &Event| event.host == uid.as_str() && event.chain == batch.chain;
    if batch.host == uid.as_str() && events.iter().all(ours) {
        Ok(events)
    } else {
        Err(Refusal::new(Code::WrongHost).with("got", &batch.host).with("have", uid))
    }
}

#[cfg(test)]
mod tests {
    use replicator_protocol::ids::Digest;
    use replicator_protocol::wire::event::{DeclarationRef, DeclarationSuperseded};

    use super::*;

    fn said(sequence: Option<u64>, body: Body) -> Option<Outcome> {
        let declaration = sequence.map(|sequence| DeclarationRef { epoch: 1, sequence, hash: Bytes::new() });
        let event = Event { declaration, body: Some(body), ..Event::default() };
        let sent = Sent { fresh: true, after: 0, envelope: Digest([7; 32]) };
        let at = position_of(&event);
        outcome(event, at, Position { epoch: 1, sequence: 5 }, &sent)
    }

    #[test]
    fn only_what_is_said_of_this_declaration_ends_the_wait() {
        let report = ApplyReported { complete: true, ..ApplyReported::default() };
        assert_eq!(said(Some(4), Body::ApplyReported(report.clone())), None);
        assert_eq!(
            said(Some(5), Body::ApplyReported(report.clone())),
            Some(Outcome::Applied(report, Said::of(&Event::default())))
        );
        let refused = |digest: u8| DeclarationRefused { envelope: vec![digest; 32].into(), ..Default::default() };
        assert_eq!(said(None, Body::DeclarationRefused(refused(8))), None);
        assert_eq!(said(None, Body::DeclarationRefused(refused(7))), Some(Outcome::Refused(refused(7))));
        let skipped = |first, last| Body::DeclarationSuperseded(DeclarationSuperseded { first, last });
        assert_eq!(said(Some(7), skipped(5, 6)), Some(Outcome::Superseded));
        assert_eq!(said(Some(7), skipped(6, 6)), None);
    }
}

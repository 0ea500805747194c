//! `enrol --stdio`: the messages of first contact as frames on stdin and stdout.
//!
//! A frame is a big-endian length of four bytes, then that many bytes. In: bundle, challenge, grant. Out:
//! introduction, answer. Talk goes to stderr.

use std::io::{self, Read, Write};
use std::sync::Arc;

use bytes::Bytes;
use replicator_protocol::enrolment::{EnrolBundle, FRAME_MAX};
use replicator_protocol::wire::event::event::Body;
use replicator_protocol::wire::event::{Enrolled, EnrolmentRefused};
use zeroize::Zeroizing;

use super::failure::Failure;
use super::output;
use crate::abilities::Abilities;
use crate::clock::{Clock, SystemClock};
use crate::config::Layout;
use crate::keys::Membership;
use crate::keys::enrolment::{EnrolError, Enrolment};
use crate::ledger::{Hold, Ledger, OpenError};

pub(super) fn over_stdio(layout: &Layout, again: bool) -> Result<(), Failure> {
    let (mut stdin, mut stdout) = (io::stdin().lock(), io::stdout().lock());
    let bundle = Zeroizing::new(receive(&mut stdin, "the bundle")?);
    let bundle: EnrolBundle = serde_json::from_slice(&bundle)
        .map_err(|_| Failure::message("the first frame is no enrolment bundle").into_usage())?;
    let hold = hold(layout)?;
    let clock = SystemClock;
    let now = clock.wall_time();
    let told = |error| refused(layout, &bundle, error, &hold);
    let (mut enrolment, introduction) =
        Enrolment::begin(layout, &bundle, Abilities::of_this_machine, (now, again)).map_err(told)?;
    send(&mut stdout, &introduction)?;
    let challenge = Bytes::from(receive(&mut stdin, "the challenge")?);
    let answer = enrolment.answer(&challenge).map_err(told)?;
    send(&mut stdout, &answer)?;
    let grant = Bytes::from(receive(&mut stdin, "the grant")?);
    let membership = enrolment.finish(&grant).map_err(told)?;

    let mut ledger = match Ledger::open_held(&layout.ledger(), (&membership.uid, Arc::new(clock)), hold) {
        Err(OpenError::Damaged(damage)) => {
            output::talk(&format!("The ledger is damaged; the agent sets it aside when it starts: {damage}"));
            return Ok(());
        }
        opened => opened?,
    };
    let enrolled = Enrolled {
        fleet: membership.fleet.to_string(),
        host: membership.host.to_string(),
        root: membership.root().map(|root| Bytes::copy_from_slice(&root.0)).unwrap_or_default(),
        token_id: token_id(&bundle),
    };
    ledger.append(None, vec![Body::Enrolled(enrolled)])?;
    output::talk(&format!("Enrolled as {} of fleet {}", membership.host, membership.fleet));
    Ok(())
}

/// Holds the ledger for as long as the enrolment takes: no agent starts meanwhile.
fn hold(layout: &Layout) -> Result<Hold, Failure> {
    layout.make_folders()?;
    match Hold::take(&layout.ledger()) {
        Err(OpenError::Locked(_)) => {
            let hint = "stop the running agent first, then enrol again";
            Err(Failure::message("an agent is running here").hint(hint))
        }
        taken => {
            let hold = taken?;
            layout.sweep()?;
            Ok(hold)
        }
    }
}

fn token_id(bundle: &EnrolBundle) -> Bytes {
    bundle.token().map(|token| Bytes::copy_from_slice(&token.id)).unwrap_or_default()
}

/// What is shown of `error`. A refusal is an event of a host that is a member: somebody tried.
fn refused(layout: &Layout, bundle: &EnrolBundle, error: EnrolError, hold: &Hold) -> Failure {
    let EnrolError::Refused(refusal) = &error else { return error.into() };
    let code = refusal.code.as_str().to_owned();
    let fields = refusal.fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let body = Body::EnrolmentRefused(EnrolmentRefused { code, fields, token_id: token_id(bundle) });
    let recorded = || -> Result<(), Failure> {
        let Ok(membership) = Membership::load(&layout.trust()) else { return Ok(()) };
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let mut ledger = Ledger::open_held(&layout.ledger(), (&membership.uid, clock), hold.clone())?;
        ledger.append(None, vec![body])?;
        Ok(())
    };
    match recorded() {
        Ok(()) => error.into(),
        Err(unrecorded) => Failure::from(error).caused_by(&unrecorded),
    }
}

impl From<EnrolError> for Failure {
    fn from(error: EnrolError) -> Self {
        let failure = Self::error(&error);
        match &error {
            EnrolError::AlreadyEnrolled(_) => failure.hint("to enrol it again on purpose, add `--again`"),
            EnrolError::Config(_) => failure.hint("correct the settings the controller sends").into_usage(),
            EnrolError::File(_) | EnrolError::Key(_) | EnrolError::Membership(_) => {
                failure.hint("run the agent as root, and see that the disk has room")
            }
            EnrolError::Refused(refusal) => Self::refused(refusal),
        }
    }
}

/// Reads one frame; `what` names it in errors.
fn receive(stream: &mut impl Read, what: &str) -> Result<Vec<u8>, Failure> {
    let cut = |error: io::Error| Failure::message(&format!("{what} did not arrive")).caused_by(&error).into_usage();
    let mut length = [0; 4];
    stream.read_exact(&mut length).map_err(cut)?;
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    if length > FRAME_MAX {
        let says = format!("{what} is larger than a frame may be (got {length} bytes, have {FRAME_MAX})");
        return Err(Failure::message(&says).into_usage());
    }
    let mut frame = vec![0; length];
    stream.read_exact(&mut frame).map_err(cut)?;
    Ok(frame)
}

fn send(stream: &mut impl Write, frame: &Bytes) -> Result<(), Failure> {
    let length = u32::try_from(frame.len()).unwrap_or(u32::MAX);
    let sent =
        stream.write_all(&length.to_be_bytes()).and_then(|()| stream.write_all(frame)).and_then(|()| stream.flush());
    sent.map_err(|error| Failure::message("the controller went away").caused_by(&error))
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use replicator_protocol::enrolment::{Token, TokenSecret};
    use replicator_protocol::refusal::{Code, Refusal};
    use replicator_protocol::wire::event::Event;

    use super::*;
    use crate::ledger::Reader;
    use crate::testing;

    #[test]
    fn frame_comes_back_as_it_was_sent() {
        let mut wire = Vec::new();
        send(&mut wire, &Bytes::from_static(b"hello")).unwrap();
        send(&mut wire, &Bytes::new()).unwrap();
        let mut stream = &wire[..];
        assert_eq!(receive(&mut stream, "it").unwrap(), b"hello");
        assert_eq!(receive(&mut stream, "it").unwrap(), b"");
        assert!(receive(&mut stream, "it").unwrap_err().to_string().starts_with("error: it did not arrive"));
    }

    #[test]
    fn frame_above_the_limit_is_refused_before_it_is_read() {
        let error = receive(&mut &[0xff, 0xff, 0xff, 0xff][..], "the bundle").unwrap_err();
        assert!(error.to_string().contains("larger than a frame"));
    }

    #[test]
    fn what_an_agent_that_died_was_writing_goes_once_no_other_can_be_writing() {
        let at = tempfile::tempdir().unwrap();
        let layout = Layout::new(at.path());
        layout.make_folders().unwrap();
        let left = layout.keys().join(".new-aB3xYz");
        std::fs::write(&left, "half a key").unwrap();
        let other = Hold::take(&layout.ledger()).unwrap();
        assert!(hold(&layout).is_err());
        assert!(left.exists(), "an agent runs, and may be writing it");
        drop(other);
        let _held = hold(&layout).unwrap();
        assert!(!left.exists());
    }

    #[test]
    fn refused_enrolment_of_a_member_is_an_event_with_its_code() {
        let at = tempfile::tempdir().unwrap();
        let layout = Layout::new(at.path());
        layout.make_folders().unwrap();
        let me = testing::membership();
        let token =
            Token { id: [4; 16], secret: TokenSecret::new([2; 32]), fleet: me.fleet.clone(), host: me.host.clone() };
        let bundle = EnrolBundle::new(&token, &[], String::new());
        let hold = hold(&layout).unwrap();
        let spent = || EnrolError::Refused(Refusal::new(Code::SpentToken).with("token", "04"));
        let shown = refused(&layout, &bundle, spent(), &hold).to_string();
        assert!(shown.starts_with("refused (spent-token): "), "{shown}");
        assert!(!layout.ledger_files().exists(), "who is no member has no ledger");
        me.keep(&layout.trust()).unwrap();
        let shown = refused(&layout, &bundle, spent(), &hold).to_string();
        assert!(shown.starts_with("refused (spent-token): ") && !shown.contains("caused by"), "{shown}");
        let entries = Reader::open(&layout.ledger()).unwrap().unwrap().read_after(0, 10).unwrap();
        let event = Event::decode(entries.last().unwrap().payload.clone()).unwrap();
        let Some(Body::EnrolmentRefused(told)) = event.body else { panic!("{event:?}") };
        assert_eq!(
            (told.code.as_str(), &told.token_id[..], told.fields["token"].as_str()),
            ("spent-token", &[4; 16][..], "04")
        );
    }
}

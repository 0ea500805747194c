//! Which declaration is the newer one: by numbers, never by clocks.

use replicator_protocol::ids::{Digest, Position};
use replicator_protocol::refusal::{Code, Refusal};

use super::Floor;

/// How far a sequence may be above the last one accepted: no controller leaves so many out, and a forger who
/// could name the highest number would close the host to everyone after.
pub const JUMP_MAX: u64 = 1 << 20;

/// What becomes of a sound declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is the next in force.
    Accept,
    /// It is the one in force.
    Same,
    /// It has the number of the one in force and differs: someone signs twice.
    Equivocation,
}

/// Compares `position` and `hash` with the `floor`, the last accepted; `epoch` is the keyring's.
///
/// # Errors
///
/// [`Code::StaleSequence`], [`Code::WrongEpoch`], [`Code::SequenceJump`].
pub fn decide(floor: Option<&Floor>, position: Position, hash: Digest, epoch: u64) -> Result<Verdict, Refusal> {
    if let Some(floor) = floor.filter(|floor| floor.position == position) {
        return Ok(if floor.hash == hash { Verdict::Same } else { Verdict::Equivocation });
    }
    if let Some(floor) = floor.filter(|floor| position < floor.position) {
        let have = floor.position;
        return Err(if position.epoch == have.epoch {
            Refusal::new(Code::StaleSequence).with("got", position.sequence).with("have", have.sequence)
        } else {
            Refusal::new(Code::StaleSequence).with("got", shown(position)).with("have", shown(have))
        });
    }
    if position.epoch != epoch {
        return Err(Refusal::new(Code::WrongEpoch).with("got", position.epoch).with("have", epoch));
    }
    let before = floor.filter(|floor| floor.position.epoch == epoch).map_or(0, |floor| floor.position.sequence);
    if position.sequence - before > JUMP_MAX {
        return Err(Refusal::new(Code::SequenceJump).with("got", position.sequence).with("have", before));
    }
    Ok(Verdict::Accept)
}

fn shown(position: Position) -> String {
    format!("{}/{}", position.epoch, position.sequence)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(epoch: u64, sequence: u64) -> Position {
        Position { epoch, sequence }
    }

    fn verdict(floor: Option<Position>, next: Position, epoch: u64) -> Result<Verdict, Code> {
        let floor = floor.map(|position| Floor { position, hash: Digest([1; 32]) });
        decide(floor.as_ref(), next, Digest([1; 32]), epoch).map_err(|refusal| refusal.code)
    }

    #[test]
    fn next_sequence_is_accepted_and_an_older_one_is_stale() {
        assert_eq!(verdict(None, at(1, 1), 1), Ok(Verdict::Accept));
        assert_eq!(verdict(Some(at(1, 4)), at(1, 5), 1), Ok(Verdict::Accept));
        assert_eq!(verdict(Some(at(1, 4)), at(1, 3), 1), Err(Code::StaleSequence));
        assert_eq!(verdict(Some(at(2, 1)), at(1, 900), 2), Err(Code::StaleSequence));
    }

    #[test]
    fn same_number_is_a_repetition_or_an_equivocation() {
        let floor = Floor { position: at(1, 4), hash: Digest([1; 32]) };
        assert_eq!(decide(Some(&floor), at(1, 4), Digest([1; 32]), 1), Ok(Verdict::Same));
        assert_eq!(decide(Some(&floor), at(1, 4), Digest([2; 32]), 1), Ok(Verdict::Equivocation));
    }

    #[test]
    fn epoch_is_the_keyrings_and_opens_a_new_count() {
        assert_eq!(verdict(Some(at(1, 900)), at(2, 1), 2), Ok(Verdict::Accept));
        assert_eq!(verdict(Some(at(1, 900)), at(2, 1), 1), Err(Code::WrongEpoch));
        assert_eq!(verdict(None, at(3, 1), 1), Err(Code::WrongEpoch));
    }

    #[test]
    fn jump_beyond_any_count_is_refused() {
        assert_eq!(verdict(Some(at(1, 4)), at(1, 4 + JUMP_MAX), 1), Ok(Verdict::Accept));
        assert_eq!(verdict(Some(at(1, 4)), at(1, 5 + JUMP_MAX), 1), Err(Code::SequenceJump));
        assert_eq!(verdict(Some(at(1, 4)), at(1, u64::MAX), 1), Err(Code::SequenceJump));
        assert_eq!(verdict(Some(at(1, 4)), at(2, 2 + JUMP_MAX), 2), Err(Code::SequenceJump));
    }
}

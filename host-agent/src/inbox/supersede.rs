//! What was skipped on the way to the newest declaration.

use replicator_protocol::ids::Position;

use super::Floor;

/// The first and last sequence between `floor` and `accepted`, in the epoch of `accepted`; `None` where nothing
/// was skipped.
#[must_use]
pub fn skipped(floor: Option<&Floor>, accepted: Position) -> Option<(u64, u64)> {
    let before =
        floor.filter(|floor| floor.position.epoch == accepted.epoch).map_or(0, |floor| floor.position.sequence);
    // A host's first declaration has nothing before it that this host could have been told.
    floor?;
    (before + 1 < accepted.sequence).then(|| (before + 1, accepted.sequence - 1))
}

#[cfg(test)]
mod tests {
    use replicator_protocol::ids::Digest;

    use super::*;

    #[test]
    fn range_between_is_named_exactly() {
        let floor = Floor { position: Position { epoch: 1, sequence: 3 }, hash: Digest([0; 32]) };
        let to = |epoch, sequence| skipped(Some(&floor), Position { epoch, sequence });
        assert_eq!(to(1, 4), None);
        assert_eq!(to(1, 7), Some((4, 6)));
        assert_eq!(to(2, 1), None);
        assert_eq!(to(2, 3), Some((1, 2)));
        assert_eq!(skipped(None, Position { epoch: 1, sequence: 7 }), None);
    }
}

//! The last accepted position, in two files outside the ledger: a damaged ledger lets no old declaration in.

use std::path::{Path, PathBuf};

use replicator_protocol::ids::{Digest, Position};

use crate::durable::{self, FileError};

/// The last declaration accepted; nothing below it ever is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Floor {
    /// Where it stands.
    pub position: Position,
    /// SHA-256 of its signed payload.
    pub hash: Digest,
}

/// The floor could not be had.
#[derive(Debug, thiserror::Error)]
pub enum AnchorError {
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// Files are there, and none can be read. Without a floor an old declaration could be taken for a new one.
    #[error("neither `{}` nor `{}` says what was accepted last", .0.display(), .1.display())]
    Damaged(PathBuf, PathBuf),
}

/// Two copies, each written whole.
#[derive(Debug, Clone)]
pub struct Anchors([PathBuf; 2]);

impl Anchors {
    /// The copies at these paths.
    #[must_use]
    pub fn new(paths: [PathBuf; 2]) -> Self {
        Self(paths)
    }

    /// The higher of the copies that can be read; `None` where there is no file yet.
    ///
    /// # Errors
    ///
    /// See [`AnchorError`].
    pub fn read(&self) -> Result<Option<Floor>, AnchorError> {
        let [first, second] = [read(&self.0[0])?, read(&self.0[1])?];
        let (there, floors): (Vec<_>, Vec<_>) = [first, second].into_iter().flatten().map(|read| ((), read)).unzip();
        match floors.into_iter().flatten().max_by_key(|floor| floor.position) {
            Some(floor) => Ok(Some(floor)),
            None if there.is_empty() => Ok(None),
            None => Err(AnchorError::Damaged(self.0[0].clone(), self.0[1].clone())),
        }
    }

    /// Writes both copies; they are on disk when this returns.
    ///
    /// # Errors
    ///
    /// [`AnchorError::File`]: at least one copy still holds the floor before.
    pub fn write(&self, floor: &Floor) -> Result<(), AnchorError> {
        let line = line(floor);
        let text = format!("{line} {}\n", Digest::of(line.as_bytes()));
        for path in &self.0 {
            durable::replace(path, text.as_bytes(), 0o600)?;
        }
        Ok(())
    }
}

fn line(floor: &Floor) -> String {
    format!("{} {} {}", floor.position.epoch, floor.position.sequence, floor.hash)
}

/// `None` where there is no file, `Some(None)` where it holds no floor.
fn read(path: &Path) -> Result<Option<Option<Floor>>, FileError> {
    Ok(durable::read(path)?.map(|bytes| std::str::from_utf8(&bytes).ok().and_then(parse)))
}

fn parse(text: &str) -> Option<Floor> {
    let (of, sum) = text.strip_suffix('\n')?.rsplit_once(' ')?;
    if Digest::of(of.as_bytes()).to_string() != sum {
        return None;
    }
    let mut words = of.split(' ');
    let epoch = words.next()?.parse().ok()?;
    let sequence = words.next()?.parse().ok()?;
    let mut hash = [0; 32];
    hex::decode_to_slice(words.next()?, &mut hash).ok()?;
    Some(Floor { position: Position { epoch, sequence }, hash: Digest(hash) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floor(sequence: u64) -> Floor {
        Floor { position: Position { epoch: 1, sequence }, hash: Digest([7; 32]) }
    }

    #[test]
    fn one_torn_copy_is_outlived_and_two_are_not() {
        let at = tempfile::tempdir().unwrap();
        let paths = [at.path().join("a"), at.path().join("b")];
        let anchors = Anchors::new(paths.clone());
        assert_eq!(anchors.read().unwrap(), None);
        anchors.write(&floor(5)).unwrap();
        assert_eq!(anchors.read().unwrap(), Some(floor(5)));
        std::fs::write(&paths[0], b"1 4").unwrap();
        assert_eq!(anchors.read().unwrap(), Some(floor(5)));
        std::fs::write(&paths[1], b"").unwrap();
        assert!(matches!(anchors.read(), Err(AnchorError::Damaged(..))));
    }

    #[test]
    fn changed_number_is_noticed() {
        let at = tempfile::tempdir().unwrap();
        let path = at.path().join("a");
        Anchors::new([path.clone(), at.path().join("b")]).write(&floor(5)).unwrap();
        let altered = std::fs::read_to_string(&path).unwrap().replacen("1 5", "1 4", 1);
        assert_eq!(parse(&altered), None);
    }
}

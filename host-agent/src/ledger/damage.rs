//! What is wrong with a ledger that is not what was written.

use std::path::PathBuf;

/// The first thing wrong, and how far the ledger is good.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// Numbers are missing.
    #[error("entries {first} to {last} are missing")]
    Missing {
        /// First missing number.
        first: u64,
        /// Last missing number.
        last: u64,
    },
    /// An entry is not what was written: its bytes, its place, its chain or its host.
    #[error("entry {number} is not what was written: {what}")]
    Altered {
        /// Its number.
        number: u64,
        /// What does not fit.
        what: &'static str,
    },
    /// A database file itself is damaged.
    #[error("the database file `{}` is damaged: {what}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What SQLite says of it.
        what: String,
        /// The last entry before it.
        last_good: u64,
    },
}

impl Damage {
    /// The last number before the damage; 0 where nothing can be relied on.
    #[must_use]
    pub fn last_good(&self) -> u64 {
        match self {
            Self::Missing { first, .. } => first.saturating_sub(1),
            Self::Altered { number, .. } => number.saturating_sub(1),
            Self::File { last_good, .. } => *last_good,
        }
    }
}

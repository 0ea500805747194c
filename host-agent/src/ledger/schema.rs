//! The tables, and how an older file becomes a current one. Migrations only add.

use rusqlite::Connection;

use super::error::{OpenError, at};

/// One step for each format; `user_version` counts those done.
const MIGRATIONS: &[&str] = &[EVENTS, CHECKPOINT];

const EVENTS: &str = "
    CREATE TABLE events (
        number    INTEGER PRIMARY KEY CHECK (number >= 1),
        wall_time INTEGER NOT NULL,
        kind      INTEGER NOT NULL,
        payload   BLOB    NOT NULL,
        previous  BLOB    NOT NULL CHECK (length(previous) = 32),
        hash      BLOB    NOT NULL CHECK (length(hash) = 32)
    ) STRICT;
    CREATE TRIGGER events_are_never_changed BEFORE UPDATE ON events
        BEGIN SELECT RAISE(ABORT, 'events are never changed'); END;
    CREATE TRIGGER events_are_never_removed BEFORE DELETE ON events
        BEGIN SELECT RAISE(ABORT, 'events are never removed'); END;
    -- Without this, INSERT OR REPLACE would remove an event and fire no trigger of removal.
    CREATE TRIGGER events_are_never_replaced BEFORE INSERT ON events
        WHEN EXISTS (SELECT 1 FROM events WHERE number = NEW.number)
        BEGIN SELECT RAISE(ABORT, 'events are never replaced'); END;
    -- How far a collector's receipt reaches, one row a chain. Outside the log: it may go back.
    CREATE TABLE settled (
        chain  BLOB    PRIMARY KEY CHECK (length(chain) = 16),
        number INTEGER NOT NULL CHECK (number >= 0)
    ) STRICT;
";

const CHECKPOINT: &str = "
    -- What all entries before this file fold to, and the last of them: see `checkpoint.rs`.
    CREATE TABLE checkpoint (
        id     INTEGER PRIMARY KEY CHECK (id = 1),
        number INTEGER NOT NULL CHECK (number >= 1),
        hash   BLOB    NOT NULL CHECK (length(hash) = 32),
        state  BLOB    NOT NULL
    ) STRICT;
    CREATE TRIGGER checkpoint_is_never_changed BEFORE UPDATE ON checkpoint
        BEGIN SELECT RAISE(ABORT, 'a checkpoint is never changed'); END;
    CREATE TRIGGER checkpoint_is_never_removed BEFORE DELETE ON checkpoint
        BEGIN SELECT RAISE(ABORT, 'a checkpoint is never removed'); END;
    CREATE TRIGGER checkpoint_is_never_replaced BEFORE INSERT ON checkpoint
        WHEN EXISTS (SELECT 1 FROM checkpoint)
        BEGIN SELECT RAISE(ABORT, 'a checkpoint is never replaced'); END;
";

/// Brings the file to the current format, each step in a transaction of its own.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), OpenError> {
    let known = u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX);
    let found = connection.pragma_query_value(None, "user_version", |row| row.get(0));
    let found: u32 = found.map_err(at::<OpenError>(connection))?;
    if found > known {
        return Err(OpenError::Newer { found, known });
    }
    for (version, step) in (1_u32..).zip(MIGRATIONS).skip(usize::try_from(found).unwrap_or(usize::MAX)) {
        apply(connection, version, step).map_err(at::<OpenError>(connection))?;
    }
    Ok(())
}

fn apply(connection: &mut Connection, version: u32, step: &str) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    transaction.execute_batch(step)?;
    transaction.pragma_update(None, "user_version", version)?;
    transaction.commit()
}

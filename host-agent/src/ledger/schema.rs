//! The tables, and how an older file becomes a current one. Migrations only add.

use rusqlite::Connection;

use super::error::OpenError;

/// One step for each format; `user_version` counts those done.
const MIGRATIONS: &[&str] = &["
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
"];

/// Brings the file to the current format, each step in a transaction of its own.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), OpenError> {
    let found: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let known = u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX);
    if found > known {
        return Err(OpenError::Newer { found, known });
    }
    for (version, step) in (1_u32..).zip(MIGRATIONS).skip(usize::try_from(found).unwrap_or(usize::MAX)) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "user_version", version)?;
        transaction.commit()?;
    }
    Ok(())
}

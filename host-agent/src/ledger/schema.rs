//! The tables, and how an older file becomes a current one. Migrations only add.

use std::path::PathBuf;

use rusqlite::Connection;

use super::damage::Damage;
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

/// What a database is made of: for each table, index and trigger, its kind, name and text.
type Form = Vec<(String, String, String)>;

/// Brings the file to the current format, each step in a transaction of its own.
///
/// # Errors
///
/// [`OpenError::Newer`], or what [`check`] says: the file is then as it was.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), OpenError> {
    let found = check(connection)?;
    for (version, step) in (1_u32..).zip(MIGRATIONS).skip(usize::try_from(found).unwrap_or(usize::MAX)) {
        apply(connection, version, step).map_err(at::<OpenError>(connection))?;
    }
    Ok(())
}

/// Whether the file has the tables of the format it says it has, which is returned.
///
/// # Errors
///
/// [`OpenError::Newer`] where it says, and looks, as if a newer agent had made it; [`OpenError::Damaged`] where number
/// and tables do not go together.
pub(super) fn check(connection: &Connection) -> Result<u32, OpenError> {
    let failed = at::<OpenError>(connection);
    let number: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(&failed)?;
    let known = formats().map_err(&failed)?;
    let form = form(connection).map_err(&failed)?;
    let of_number = usize::try_from(number).ok().and_then(|number| known.get(number));
    match of_number {
        Some(of_number) if tables(of_number).eq(tables(&form)) => Ok(u32::try_from(number).unwrap_or_default()),
        None if number > 0 && !known.contains(&form) => Err(OpenError::Newer {
            found: u32::try_from(number).unwrap_or(u32::MAX),
            known: u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX),
        }),
        Some(_) | None => {
            let path = PathBuf::from(connection.path().unwrap_or_default());
            let what = format!("its tables are not those of its format ({number})");
            Err(OpenError::Damaged(Damage::File { path, what, last_good: 0 }))
        }
    }
}

/// What files of each format are made of, that of none first.
fn formats() -> rusqlite::Result<Vec<Form>> {
    let connection = Connection::open_in_memory()?;
    let mut formats = vec![form(&connection)?];
    for step in MIGRATIONS {
        connection.execute_batch(step)?;
        formats.push(form(&connection)?);
    }
    Ok(formats)
}

fn form(connection: &Connection) -> rusqlite::Result<Form> {
    let query = "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name";
    let mut statement = connection.prepare(query)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    rows.collect()
}

/// Tables alone: a trigger that is missing takes no entry away.
fn tables(form: &Form) -> impl Iterator<Item = &(String, String, String)> {
    form.iter().filter(|(kind, ..)| kind == "table")
}

fn apply(connection: &mut Connection, version: u32, step: &str) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    transaction.execute_batch(step)?;
    transaction.pragma_update(None, "user_version", version)?;
    transaction.commit()
}

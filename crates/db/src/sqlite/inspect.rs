//! Inspects a database without changing it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior, ffi};

use crate::error::{DatabaseError, DbResult};
use crate::sqlite::migrations::{Migrations, SchemaState, state};

/// A larger file is not checked completely, because the user waits.
const FULL_CHECK_BYTES: u64 = 64 << 20;

/// How long to wait for another process. Shorter than for real work.
const BUSY_TIMEOUT: Duration = Duration::from_secs(1);

/// A database that can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatabaseState {
    pub bytes: u64,
    /// The number of missing migrations. Opening the database runs them.
    pub steps_behind: i64,
}

/// The state of the database at `path`; `None` if it does not exist. Creates and migrates nothing. Blocks.
pub fn inspect(path: &Path, migrations: &[Migrations]) -> DbResult<Option<DatabaseState>> {
    let Ok(metadata) = path.metadata() else { return Ok(None) };
    let bytes = metadata.len();
    match look(path, bytes, migrations).map_err(|error| DatabaseError::explain(path, error))? {
        SchemaState::Current => Ok(Some(DatabaseState { bytes, steps_behind: 0 })),
        SchemaState::Behind { steps } => Ok(Some(DatabaseState { bytes, steps_behind: steps })),
        SchemaState::Newer { found, known } => {
            Err(DatabaseError::Newer { path: path.to_owned(), found, known })
        }
    }
}

/// Reads the database at `path` without migrations, so tables may be missing; `None` if it does not exist. Creates nothing.
/// Blocks.
pub fn peek<T>(path: &Path, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> DbResult<Option<T>> {
    // A file in a directory that may not be read can exist: opening it says what is wrong.
    if matches!(path.try_exists(), Ok(false)) {
        return Ok(None);
    }
    let found = open(path).and_then(|connection| read(&connection));
    found.map(Some).map_err(|error| DatabaseError::explain(path, error))
}

fn open(path: &Path) -> rusqlite::Result<Connection> {
    let access = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, access)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    // Closing a database moves or deletes its log. For a damaged database, the log may be all that is left.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, beside(path).exists())?;
    Ok(connection)
}

/// The write-ahead log.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

/// Checks the database.
fn look(path: &Path, bytes: u64, migrations: &[Migrations]) -> rusqlite::Result<SchemaState> {
    let mut connection = open(path)?;
    let state = state(&connection, migrations)?;
    if bytes <= FULL_CHECK_BYTES {
        check_pages(&connection)?;
    }
    // Checks that the database is writable, without writing.
    connection.transaction_with_behavior(TransactionBehavior::Immediate)?.rollback()?;
    Ok(state)
}

fn check_pages(connection: &Connection) -> rusqlite::Result<()> {
    let verdict: String = connection.pragma_query_value(None, "quick_check", |row| row.get(0))?;
    match verdict.as_str() {
        "ok" => Ok(()),
        _ => {
            let damaged = ffi::Error::new(ffi::SQLITE_CORRUPT);
            Err(rusqlite::Error::SqliteFailure(damaged, Some(verdict)))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::sqlite::database::Database;

    const NOTES: &[Migrations] = &[Migrations {
        capability: "notes",
        steps: &["CREATE TABLE note (text TEXT NOT NULL) STRICT", "CREATE INDEX note_text ON note (text)"],
        legacy_versions: &[1],
    }];

    #[test]
    fn a_missing_database_is_not_created() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("hob.db");
        assert!(matches!(inspect(&path, NOTES), Ok(None)));
        assert!(!path.exists());
    }

    #[test]
    fn a_good_database_is_reported_and_an_old_one_is_not_migrated() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("hob.db");
        drop(Database::open(&path, NOTES).expect("made"));
        let state = inspect(&path, NOTES).expect("good").expect("there");
        assert_eq!((state.steps_behind, state.bytes > 0), (0, true));

        let old = root.path().join("old.db");
        fs::write(&old, b"").expect("written");
        let expected = DatabaseState { bytes: 0, steps_behind: 3 };
        assert_eq!(inspect(&old, NOTES).expect("good"), Some(expected));
        assert_eq!(fs::read(&old).expect("there"), b"", "looking changes nothing");
    }

    #[test]
    fn files_beside_a_damaged_database_are_unchanged() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("hob.db");
        fs::write(&path, "no database at all".repeat(1000)).expect("written");
        fs::write(beside(&path), "what was written last").expect("written");
        assert!(matches!(inspect(&path, NOTES), Err(DatabaseError::Damaged { .. })));
        assert_eq!(fs::read(beside(&path)).expect("there"), b"what was written last");
    }

    #[test]
    fn damage_is_found() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("hob.db");
        fs::write(&path, "this is no database, however long one looks at it".repeat(100)).expect("written");
        assert!(matches!(inspect(&path, NOTES), Err(DatabaseError::Damaged { .. })));
        fs::remove_file(&path).expect("removed");

        let database = Database::open(&path, NOTES).expect("made");
        database.writer().pragma_update(None, "user_version", 4711).expect("written");
        assert!(matches!(inspect(&path, NOTES), Err(DatabaseError::Newer { found: 4711, .. })));
        database.writer().pragma_update(None, "user_version", 11).expect("written");
        database.writer().execute_batch("BEGIN EXCLUSIVE").expect("locked");
        assert!(matches!(inspect(&path, NOTES), Err(DatabaseError::Busy { .. })));
    }

    #[test]
    fn an_inspection_creates_and_migrates_nothing() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("hob.db");
        let notes = |connection: &Connection| -> rusqlite::Result<i64> {
            connection.query_row("SELECT count(*) FROM note", [], |row| row.get(0))
        };
        assert_eq!(peek(&path, notes).expect("nothing is there"), None);
        assert!(!path.exists(), "looking makes nothing");
        drop(Database::open(&path, NOTES).expect("made"));
        assert_eq!(peek(&path, notes).expect("readable"), Some(0));

        let old = root.path().join("old.db");
        fs::write(&old, b"").expect("written");
        assert!(peek(&old, notes).is_err(), "it has no such table");
        assert_eq!(fs::read(&old).expect("there"), b"");
    }

    #[test]
    fn a_damaged_page_in_the_middle_is_found() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("hob.db");
        drop(Database::open(&path, NOTES).expect("made"));
        let mut bytes = fs::read(&path).expect("there");
        // The first page says where the others are; those are overwritten.
        bytes[4096..].fill(0xAB);
        fs::write(&path, bytes).expect("written");
        assert!(matches!(inspect(&path, NOTES), Err(DatabaseError::Damaged { .. })));
    }
}

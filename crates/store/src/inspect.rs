//! Looks at a database without changing what is in it: is it there, can it be used, how old is it.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, TransactionBehavior, ffi};

use crate::error::StoreError;
use crate::migrations::{Schema, version};

/// A larger file is not read from end to end: somebody waits for the answer.
const READ_WHOLE: u64 = 64 << 20;

/// Whoever only looks does not wait for another process as long as whoever has work to do.
const PATIENCE: Duration = Duration::from_secs(1);

/// A database that can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Condition {
    pub bytes: u64,
    /// How many steps it lacks of those this Hob knows. Opening it takes them.
    pub steps_behind: i64,
}

/// How the database at `path` is; `None` where there is none. Creates nothing, and brings nothing up to date. Blocks.
pub fn inspect(path: &Path, schema: Schema) -> Result<Option<Condition>, StoreError> {
    let Ok(metadata) = path.metadata() else { return Ok(None) };
    let bytes = metadata.len();
    let found = look(path, bytes).map_err(|error| StoreError::explain(path, error))?;
    let known = schema.latest();
    if (0..=known).contains(&found) {
        Ok(Some(Condition { bytes, steps_behind: known - found }))
    } else {
        Err(StoreError::Newer { path: path.to_owned(), found, known })
    }
}

/// The version of the database, if all is well with it.
fn look(path: &Path, bytes: u64) -> rusqlite::Result<i64> {
    let access = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, access)?;
    connection.busy_timeout(PATIENCE)?;
    let version = version(&connection)?;
    if bytes <= READ_WHOLE {
        check_pages(&connection)?;
    }
    // Whether it could be written, without writing.
    connection.transaction_with_behavior(TransactionBehavior::Immediate)?.rollback()?;
    Ok(version)
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
    use crate::store::Store;

    #[test]
    fn a_database_that_is_not_there_is_not_made() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("hob.db");
        assert!(matches!(inspect(&path, Schema::HOB), Ok(None)));
        assert!(!path.exists());
    }

    #[test]
    fn a_good_one_is_good_and_an_old_one_stays_old() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("hob.db");
        drop(Store::open(&path, Schema::HOB).expect("made"));
        let condition = inspect(&path, Schema::HOB).expect("good").expect("there");
        assert_eq!((condition.steps_behind, condition.bytes > 0), (0, true));

        let old = root.path().join("old.db");
        fs::write(&old, b"").expect("written");
        let expected = Condition { bytes: 0, steps_behind: Schema::HOB.latest() };
        assert_eq!(inspect(&old, Schema::HOB).expect("good"), Some(expected));
        assert_eq!(fs::read(&old).expect("there"), b"", "looking changes nothing");
    }

    #[test]
    fn what_is_wrong_with_it_is_found() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("hob.db");
        fs::write(&path, "this is no database, however long one looks at it".repeat(100)).expect("written");
        assert!(matches!(inspect(&path, Schema::HOB), Err(StoreError::Damaged { .. })));
        fs::remove_file(&path).expect("removed");

        let store = Store::open(&path, Schema::HOB).expect("made");
        store.writer().pragma_update(None, "user_version", 4711).expect("written");
        assert!(matches!(inspect(&path, Schema::HOB), Err(StoreError::Newer { found: 4711, .. })));
        store.writer().pragma_update(None, "user_version", Schema::HOB.latest()).expect("written");
        store.writer().execute_batch("BEGIN EXCLUSIVE").expect("locked");
        assert!(matches!(inspect(&path, Schema::HOB), Err(StoreError::Busy { .. })));
    }

    #[test]
    fn a_hole_in_the_middle_is_found() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("hob.db");
        drop(Store::open(&path, Schema::HOB).expect("made"));
        let mut bytes = fs::read(&path).expect("there");
        // The first page says where the others are; those are overwritten.
        bytes[4096..].fill(0xAB);
        fs::write(&path, bytes).expect("written");
        assert!(matches!(inspect(&path, Schema::HOB), Err(StoreError::Damaged { .. })));
    }
}

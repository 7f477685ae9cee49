//! Looks at a database without changing what is in it: is it there, can it be used, how old is it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
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

/// Whether the record at `path` knows of an answer by `engine`. One that is not there knows of none. Creates nothing, and
/// brings nothing up to date: of one that is too old to tell, this is an error. Blocks.
pub fn has_answered(path: &Path, engine: &str) -> Result<bool, StoreError> {
    if !path.exists() {
        return Ok(false);
    }
    let ask = |connection: Connection| {
        let answered =
            "SELECT EXISTS (SELECT 1 FROM telemetry_series WHERE engine = ?1 AND total_answered > 0)";
        connection.query_row(answered, [engine], |row| row.get(0))
    };
    open(path).and_then(ask).map_err(|error| StoreError::explain(path, error))
}

fn open(path: &Path) -> rusqlite::Result<Connection> {
    let access = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, access)?;
    connection.busy_timeout(PATIENCE)?;
    // Closing a database moves what stands beside it in, or deletes it. Of a damaged one that may be all there is.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, beside(path).exists())?;
    Ok(connection)
}

/// The file of what was written last.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

/// The version of the database, if all is well with it.
fn look(path: &Path, bytes: u64) -> rusqlite::Result<i64> {
    let mut connection = open(path)?;
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
    use std::time::UNIX_EPOCH;

    use hob_core::{Ending, FinishReason, Inference, RequestSource, Usage};

    use super::*;
    use crate::savings::Prices;
    use crate::store::Store;
    use crate::telemetry::Telemetry;

    fn answer(engine: &str) -> Inference {
        Inference {
            started: UNIX_EPOCH,
            run: "run".into(),
            source: RequestSource::Ask,
            engine: engine.to_owned(),
            model: "m".to_owned(),
            agent: None,
            streamed: false,
            usage: Usage { prompt_tokens: 1, completion_tokens: 1, cached_tokens: None },
            estimated: false,
            latency: Duration::from_millis(20),
            first_token: None,
            energy: None,
            ending: Ending::Complete(FinishReason::Stop),
        }
    }

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
    fn what_stands_beside_a_damaged_one_stays_there() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("hob.db");
        fs::write(&path, "no database at all".repeat(1000)).expect("written");
        fs::write(beside(&path), "what was written last").expect("written");
        assert!(matches!(inspect(&path, Schema::HOB), Err(StoreError::Damaged { .. })));
        assert_eq!(fs::read(beside(&path)).expect("there"), b"what was written last");
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
    fn an_engine_has_answered_once_an_answer_of_its_is_recorded() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("hob.db");
        assert!(!has_answered(&path, "ollama").expect("nothing is there"));
        assert!(!path.exists(), "looking makes nothing");

        let telemetry = Telemetry::new(Store::open(&path, Schema::HOB).expect("made"), Prices::standard());
        let failed = Inference { ending: Ending::Failed("unreachable".into()), ..answer("vllm") };
        telemetry.record_batch(&[answer("ollama"), failed]).expect("recorded");
        for (engine, expected) in [("ollama", true), ("vllm", false), ("llamacpp", false)] {
            assert_eq!(has_answered(&path, engine).expect("readable"), expected, "{engine}");
        }

        let old = root.path().join("old.db");
        fs::write(&old, b"").expect("written");
        assert!(has_answered(&old, "ollama").is_err(), "it cannot tell");
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

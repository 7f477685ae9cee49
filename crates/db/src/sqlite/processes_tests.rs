//! A process that is killed while it adopts a database. The test program starts itself as the other process.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hob_testkit::test_process;
use rusqlite::{Connection, TransactionBehavior};

use super::database::Database;
use super::migrations::{Migrations, user_version};

/// The file for the other process.
const FILE: &str = "HOB_TEST_DATABASE";

const MIGRATIONS: Migrations = Migrations {
    capability: "notes",
    steps: &["CREATE TABLE note (text TEXT NOT NULL) STRICT", "ALTER TABLE note ADD COLUMN pinned INTEGER"],
    legacy_versions: &[1],
};

/// Writes more than the cache holds, so that some of it is in the log, and then never ends.
const ENDLESS: &str = "
    CREATE TABLE filler (bytes BLOB);
    WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 16)
    INSERT INTO filler SELECT zeroblob(1000000) FROM number;
    DELETE FROM note;
    WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number) SELECT max(n) FROM number;";

const NEVER_ENDS: Migrations = Migrations { steps: &[MIGRATIONS.steps[0], ENDLESS], ..MIGRATIONS };

#[test]
#[ignore = "a process that the other test starts and kills"]
fn adopts_until_it_is_killed() {
    let path: PathBuf = std::env::var_os(FILE).expect("only started by another test").into();
    drop(Database::open(&path, &[NEVER_ENDS]));
}

/// Whether another process is in the midst of a write that has reached the log.
fn is_adopting(path: &Path) -> bool {
    let log = PathBuf::from(format!("{}-wal", path.display()));
    let has_spilt = log.metadata().is_ok_and(|log| log.len() > 1_000_000);
    let mut connection = Connection::open(path).expect("a file");
    connection.busy_timeout(Duration::ZERO).expect("set");
    has_spilt && connection.transaction_with_behavior(TransactionBehavior::Immediate).is_err()
}

#[test]
fn a_process_that_is_killed_while_it_adopts_a_database_leaves_one_that_opens() {
    let root = tempfile::tempdir().expect("a directory");
    let path = root.path().join("hob.db");
    let connection = Connection::open(&path).expect("a file");
    connection.execute_batch(MIGRATIONS.steps[0]).expect("a good step");
    connection.execute_batch("INSERT INTO note VALUES ('kept')").expect("written");
    connection.pragma_update(None, "user_version", 1).expect("written");
    drop(connection);

    let mut adopts = test_process("sqlite::processes_tests::adopts_until_it_is_killed");
    let mut child = adopts.env(FILE, &path).spawn().expect("started");
    let deadline = Instant::now() + Duration::from_secs(300);
    while !is_adopting(&path) {
        assert!(Instant::now() < deadline, "nothing is being adopted");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().expect("killed");
    child.wait().expect("it ended");

    let left = Connection::open(&path).expect("a file");
    assert_eq!(user_version(&left).expect("readable"), 1, "nothing of the adoption is there");
    drop(left);
    let database = Database::open(&path, &[MIGRATIONS]).expect("opened");
    let kept = database.read(|connection| {
        connection.query_row("SELECT text, pinned FROM note", [], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, Option<i64>>(1)?))
        })
    });
    assert_eq!(kept.expect("read"), ("kept".to_owned(), None));
}

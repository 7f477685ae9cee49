//! Opening, reading and writing the file.

use std::fs;

use super::*;

fn file() -> (tempfile::TempDir, PathBuf) {
    let root = tempfile::tempdir().expect("a directory");
    let path = root.path().join("deep/.hob/hob.db");
    (root, path)
}

const NOTES: &[Migrations] = &[Migrations {
    capability: "notes",
    steps: &["CREATE TABLE note (text TEXT NOT NULL UNIQUE) STRICT"],
    legacy_versions: &[],
}];

fn count(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("SELECT count(*) FROM note", [], |row| row.get(0))
}

fn add(transaction: &Transaction<'_>, text: &str) -> rusqlite::Result<usize> {
    transaction.execute("INSERT INTO note (text) VALUES (?1)", [text])
}

#[test]
fn writes_survive_a_reopen() {
    let (_root, path) = file();
    let database = Database::open(&path, NOTES).expect("opened");
    database.write(|transaction| add(transaction, "a")).expect("written");
    drop(database);
    let database = Database::open(&path, NOTES).expect("opened again");
    assert_eq!(database.read(count).expect("read"), 1);
}

#[cfg(unix)]
#[test]
fn the_database_files_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let (_root, path) = file();
    let database = Database::open(&path, NOTES).expect("opened");
    database.write(|transaction| add(transaction, "a")).expect("written");
    let mode = |path: &Path| fs::metadata(path).expect("exists").permissions().mode() & 0o777;
    let directory = path.parent().expect("a parent");
    assert_eq!(mode(directory), 0o700);
    let names: Vec<PathBuf> =
        fs::read_dir(directory).expect("readable").map(|entry| entry.expect("readable").path()).collect();
    assert_eq!(names.len(), 3, "the database, its log and the log's index: {names:?}");
    for name in names {
        assert_eq!(mode(&name), 0o600, "{}", name.display());
    }
}

#[test]
fn readers_and_the_writer_do_not_block_each_other() {
    let (_root, path) = file();
    let database = Database::open(&path, NOTES).expect("opened");
    let seen = database.read(|report| {
        let before = count(report)?;
        // From another thread; the report continues with its snapshot.
        let writer = database.clone();
        thread::spawn(move || writer.write(|transaction| add(transaction, "a")))
            .join()
            .expect("no panic")
            .expect("written");
        Ok((before, count(report)?))
    });
    assert_eq!(seen.expect("read"), (0, 0));
    assert_eq!(database.read(count).expect("read"), 1);
}

#[test]
fn work_that_fails_or_panics_leaves_nothing_behind_and_the_database_usable() {
    for database in
        [Database::in_memory(NOTES).expect("opened"), Database::open(&file().1, NOTES).expect("opened")]
    {
        let failed = database.write(|transaction| {
            add(transaction, "a")?;
            transaction.execute("INSERT INTO no_such_table VALUES (1)", [])
        });
        assert!(matches!(failed, Err(DatabaseError::Failed { .. })));
        let worker = database.clone();
        let panicked = thread::spawn(move || {
            worker.write::<()>(|transaction| {
                add(transaction, "a")?;
                panic!("in the midst of it");
            })
        });
        assert!(panicked.join().is_err());
        assert_eq!(database.read(count).expect("read"), 0);
        database.write(|transaction| add(transaction, "b")).expect("written");
        assert_eq!(database.read(count).expect("read"), 1);
    }
}

#[test]
fn many_threads_may_open_it_at_once() {
    let (_root, path) = file();
    thread::scope(|scope| {
        for number in 0..8 {
            let path = &path;
            scope.spawn(move || {
                let database = Database::open(path, NOTES).expect("opened");
                database.write(|transaction| add(transaction, &number.to_string())).expect("written");
            });
        }
    });
    assert_eq!(Database::open(&path, NOTES).expect("opened").read(count).expect("read"), 8);
}

#[test]
fn a_file_that_is_not_a_database_is_named_and_unchanged() {
    let root = tempfile::tempdir().expect("a directory");
    let path = root.path().join("hob.db");
    let text = "once upon a time ".repeat(1000);
    fs::write(&path, &text).expect("written");
    let error = Database::open(&path, NOTES).err().expect("refused").to_string();
    assert_eq!(
        error,
        format!(
            "the file {0} is damaged or is not a Hob database. Stop Hob and move it away with its -wal and -shm files; Hob then \
             creates a new one. 'sqlite3 {0} .recover' shows what can still be read.",
            path.display()
        )
    );
    assert_eq!(fs::read_to_string(&path).expect("readable"), text);
}

#[test]
fn a_damaged_database_is_an_error_that_says_so() {
    let root = tempfile::tempdir().expect("a directory");
    let path = root.path().join("hob.db");
    drop(Database::open(&path, NOTES).expect("opened"));
    let mut bytes = fs::read(&path).expect("readable");
    // The header stays; the tables' first page and all others do not.
    bytes[100..].fill(0xa5);
    fs::write(&path, &bytes).expect("written");
    let error = Database::open(&path, NOTES).and_then(|database| database.read(count)).expect_err("damaged");
    assert!(matches!(error, DatabaseError::Damaged { .. }), "{error:?}");
}

#[test]
fn a_path_where_no_file_can_exist_is_named() {
    let root = tempfile::tempdir().expect("a directory");
    let blocker = root.path().join("file");
    fs::write(&blocker, "").expect("written");
    let error = Database::open(&blocker.join("hob.db"), NOTES).err().expect("refused").to_string();
    assert_eq!(error, format!("cannot create the directory {}", blocker.display()));
    let error = Database::open(root.path(), NOTES).err().expect("refused").to_string();
    assert!(error.starts_with("cannot open the database "), "{error}");
}

#[test]
fn text_can_be_searched() {
    let database = Database::in_memory(NOTES).expect("opened");
    let found: String = database
        .write(|transaction| {
            transaction.execute_batch(
                "CREATE VIRTUAL TABLE probe USING fts5(text); INSERT INTO probe VALUES ('a hob does the chores')",
            )?;
            transaction.query_row("SELECT text FROM probe WHERE probe MATCH 'chores'", [], |row| row.get(0))
        })
        .expect("FTS5 is built in");
    assert_eq!(found, "a hob does the chores");
}

#[test]
fn after_the_last_close_everything_is_in_the_database_itself() {
    let (_root, path) = file();
    let databases = [(); 2].map(|()| Database::open(&path, NOTES).expect("opened"));
    for database in &databases {
        database.write(|transaction| add(transaction, "a").map(drop)).ok();
        database.read(count).expect("read");
    }
    drop(databases);
    let beside = PathBuf::from(format!("{}-wal", path.display()));
    assert!(!beside.exists(), "the log has {} bytes", fs::metadata(&beside).map_or(0, |log| log.len()));
    let alone = path.with_file_name("copy.db");
    fs::copy(&path, &alone).expect("copied");
    assert_eq!(Database::open(&alone, NOTES).expect("opened").read(count).expect("read"), 1);
}

/// What a power cut leaves of the last write: SQLite's FULL brings each commit to the disk, NORMAL does not.
fn survives_power_cut(database: &Database) -> bool {
    let synchronous: i64 =
        database.writer().pragma_query_value(None, "synchronous", |row| row.get(0)).expect("set");
    synchronous >= 2
}

#[test]
fn a_write_is_on_the_disk_before_it_is_acknowledged_unless_it_says_otherwise() {
    let (_root, path) = file();
    let database = Database::open(&path, NOTES).expect("opened");
    assert!(survives_power_cut(&database), "the tables themselves");
    database.write_with(Durability::ProcessEnd, |transaction| add(transaction, "a")).expect("written");
    assert!(!survives_power_cut(&database));
    database.write(|transaction| add(transaction, "b")).expect("written");
    assert!(survives_power_cut(&database));
    database.write_with(Durability::ProcessEnd, |transaction| add(transaction, "c")).expect("written");
    let log = PathBuf::from(format!("{}-wal", path.display()));
    let before = fs::metadata(&log).expect("there").len();
    database.sync().expect("synced");
    assert!(survives_power_cut(&database));
    assert!(fs::metadata(&log).expect("there").len() > before, "only a commit that writes something syncs");
}

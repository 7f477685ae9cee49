//! `memory.db` of every older version, with rows: it opens, and keeps its rows. The scripts have what a Hob of each version added to
//! the database of the version before: its migration as it was released, its rows, and its version.

use hob_core::{CollectionName, CollectionSet};
use hob_db::{Database, DatabaseError, Migrations, inspect};
use hob_memory::{MIGRATIONS, MemoryStore, SqliteMemoryStore, WordQuery};
use hob_testkit::old_database::{file, left_at, schema, user_version, versions};
use rusqlite::Connection;

const MEMORY: [&str; 3] = [include_str!("1.sql"), include_str!("2.sql"), include_str!("3.sql")];

const MEMORY_MIGRATIONS: &[Migrations] = &[MIGRATIONS];

#[test]
fn memory_db_of_every_version_opens_and_keeps_its_rows() {
    let fresh = schema(&Database::in_memory(MEMORY_MIGRATIONS).expect("opened").writer());
    for version in 0..=MEMORY.len() {
        let (_root, path) = file("memory.db");
        drop(left_at(&MEMORY, version, &path));
        let memory = SqliteMemoryStore::open(&path).expect("opened");
        let size = memory.size().expect("readable");
        let written = version as u64;
        assert_eq!((size.sources, size.chunks, size.vectors), (written, written, written));
        let query = WordQuery::of("autumn").expect("a question");
        assert_eq!(memory.find_words(&query, 10).expect("searched").len(), version, "from version {version}");
        let near = memory.find_vectors("embedder", &[1.0, 0.0, 0.0, 0.0], 10).expect("searched");
        assert_eq!(near.map_or(0, |hits| hits.len()), version, "from version {version}");
        let owners = memory.size_of(&CollectionSet::of(CollectionName::default())).expect("readable");
        assert_eq!((owners.sources, owners.vectors), (written, written), "in the owner's collection");
        memory.check().expect("the words are those of the chunks");
        drop(memory);
        let connection = Connection::open(&path).expect("a file");
        assert_eq!(schema(&connection), fresh, "from version {version}");
        assert_eq!(versions(&connection), [("memory".to_owned(), 5)]);
        assert_eq!(user_version(&connection), 11, "an older Hob refuses this");
    }
}

#[test]
fn a_database_of_a_newer_hob_is_refused_and_unchanged() {
    let (_root, path) = file("memory.db");
    let connection = left_at(&MEMORY, MEMORY.len(), &path);
    let one_more = MEMORY.len() as i64 + 1;
    connection.pragma_update(None, "user_version", one_more).expect("written");
    let before = schema(&connection);
    let error = Database::open(&path, MEMORY_MIGRATIONS).err().expect("refused").to_string();
    let known = MEMORY.len();
    assert_eq!(
        error,
        format!(
            "the database {} was written by a newer Hob: its version is {one_more}, and this Hob supports versions up to {known}. \
             Update Hob, or set HOB_HOME to another directory.",
            path.display()
        )
    );
    assert_eq!((user_version(&connection), schema(&connection)), (one_more, before));
    drop(connection);

    let (_root, path) = file("memory.db");
    let database = Database::open(&path, MEMORY_MIGRATIONS).expect("made");
    let later = "UPDATE schema_version SET version = version + 1";
    database.write(|transaction| transaction.execute(later, [])).expect("written");
    drop(database);
    assert!(matches!(Database::open(&path, MEMORY_MIGRATIONS), Err(DatabaseError::Newer { .. })));
    assert!(matches!(inspect(&path, MEMORY_MIGRATIONS), Err(DatabaseError::Newer { .. })));
}

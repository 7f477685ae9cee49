//! The memory in SQLite: several stores on one file, the codes that a process keeps, and how words are written.

use rusqlite::StatementStatus;

use super::small_collection::FIND_IN_RANGE;
use super::*;
use crate::store::tests::{add, add_to, chunk, near, scattered, source, sources_near};

fn codes_in_memory(memory: &SqliteMemoryStore) -> usize {
    memory.codes.read().len()
}

/// A memory in a file with many chunks about anything, so that not all vectors are compared.
fn many_in_a_file() -> (tempfile::TempDir, SqliteMemoryStore) {
    let root = tempfile::tempdir().unwrap();
    let memory = SqliteMemoryStore::open(&root.path().join("memory.db")).unwrap();
    add(&memory, "/others", &(0..4_300).map(scattered).collect::<Vec<_>>());
    (root, memory)
}

#[test]
fn the_rest_of_a_topic_is_found_after_most_of_it_was_removed() {
    for by_another_process in [false, true] {
        let (root, memory) = many_in_a_file();
        let topic = scattered(77_777);
        add(&memory, "/boiler", &(0..700).map(|seed| near(&topic, 0.01, seed)).collect::<Vec<_>>());
        add(&memory, "/left", &(0..3).map(|seed| near(&topic, 0.3, seed)).collect::<Vec<_>>());
        assert_eq!(sources_near(&memory, &topic, 3), ["/boiler"; 3]);

        let another = SqliteMemoryStore::open(&root.path().join("memory.db")).unwrap();
        let forgetting = if by_another_process { &another } else { &memory };
        forgetting.remove(&["/boiler".into()]).unwrap();
        assert_eq!(sources_near(&memory, &topic, 3), ["/left"; 3], "{by_another_process}");
        assert_eq!(codes_in_memory(&memory), 4_303);
    }
}

#[test]
fn a_note_that_is_saved_repeatedly_is_found_and_takes_no_more_memory() {
    let (_root, memory) = many_in_a_file();
    let topic = scattered(77_777);
    add(&memory, "/left", &[near(&topic, 0.3, 1)]);
    for round in 0..120 {
        add(&memory, "note:1", &(0..5).map(|seed| near(&topic, 0.01, round * 5 + seed)).collect::<Vec<_>>());
        let found = sources_near(&memory, &topic, 6);
        assert_eq!(found, ["note:1", "note:1", "note:1", "note:1", "note:1", "/left"], "round {round}");
        assert_eq!(codes_in_memory(&memory), 4_306);
    }
}

#[test]
fn a_reader_that_has_missed_more_than_is_listed_reads_all_codes_again() {
    let (_root, memory) = many_in_a_file();
    let topic = scattered(77_777);
    add(&memory, "/boiler", &[near(&topic, 0.01, 1)]);
    assert_eq!(sources_near(&memory, &topic, 1), ["/boiler"]);
    memory.remove(&["/boiler".into(), "/others".into()]).unwrap();
    memory
        .database
        .write(|transaction| transaction.execute("DELETE FROM memory_vector_gone WHERE id < 4000", []))
        .unwrap();
    add(&memory, "/new", &[near(&topic, 0.1, 1)]);
    assert_eq!(sources_near(&memory, &topic, 5), ["/new"]);
    assert_eq!(codes_in_memory(&memory), 1);
}

/// A memory with a small collection, `team`, at both ends of the ids, and `others` chunks with the same words between them.
fn small_among(others: usize) -> SqliteMemoryStore {
    let memory = SqliteMemoryStore::in_memory().unwrap();
    let team = CollectionName::parse("team").unwrap();
    let replace = |collection: &CollectionName, path: &str, chunks| {
        let source = NewSource { collection: collection.clone(), ..source(path, chunks) };
        memory.replace(&[source], SystemTime::now()).unwrap();
    };
    let first =
        vec![chunk("", "the boiler and its valve"), chunk("", "a valve of the valve"), chunk("", "a pump")];
    replace(&team, "/first", first);
    let many =
        (0..others).map(|_| chunk("Boiler", "a boiler with a valve, and a pump for the boiler")).collect();
    replace(&CollectionName::default(), "/others", many);
    replace(&team, "/last", vec![chunk("Valve", "closes"), chunk("", "nothing of it")]);
    memory
}

/// The chunks of `team` that a search for these words finds, and the steps that the database took to find their words.
fn found_in_team(memory: &SqliteMemoryStore, words: &str) -> (Vec<i64>, i32) {
    let team = CollectionSet::of(CollectionName::parse("team").unwrap());
    let query = WordQuery::of(words).unwrap();
    let found = memory.database.read(|connection| {
        let snapshot = SqliteSnapshot {
            connection,
            database: &memory.database,
            codes: &memory.codes,
            scope: Scope::of(&team),
        };
        let hits = words::find_words(&snapshot, &query, 9).unwrap();
        let steps = connection.prepare_cached(FIND_IN_RANGE)?.get_status(StatementStatus::VmStep);
        Ok((hits.into_iter().map(|hit| hit.chunk).collect(), steps))
    });
    found.unwrap()
}

#[test]
fn the_cost_of_a_search_in_a_small_collection_does_not_depend_on_the_memory() {
    let (large, larger) = (small_among(5_100), small_among(7_300));
    let (found, steps) = found_in_team(&large, "boiler");
    assert_eq!(found, [1]);
    assert!(steps > 0, "it was searched in ranges");
    assert_eq!(found_in_team(&larger, "boiler"), (found, steps));
    // A title counts more than a text, and a word twice more than once.
    assert_eq!(found_in_team(&large, "valve").0, [5_104, 2, 1]);
    assert_eq!(found_in_team(&large, "valve pump").0[..1], [3], "it is the only one with the rarer word");
    assert_eq!(found_in_team(&large, "heron").0, [0; 0]);
}

#[test]
fn the_vectors_of_a_small_collection_are_compared_without_the_signs_of_all() {
    let (_root, memory) = many_in_a_file();
    let (topic, team) = (scattered(77_777), CollectionName::parse("team").unwrap());
    add_to(&memory, &team, "/team", &[near(&topic, 0.3, 1), scattered(5)]);
    let mut found = None;
    let searched = memory.snapshot_of(&CollectionSet::of(team), &mut |snapshot| {
        found = Some((snapshot.find_vectors("m", &topic, 1)?, snapshot.find_vectors("other", &topic, 1)?));
        Ok(())
    });
    searched.unwrap();
    let (nearest, of_no_model) = found.unwrap();
    assert_eq!(nearest.unwrap().iter().map(|hit| hit.chunk).collect::<Vec<_>>(), [4_301]);
    assert_eq!((of_no_model, codes_in_memory(&memory)), (None, 0));
}

/// A savepoint would make the index of words write down what it has, and many small pieces are merged at great cost.
#[test]
fn the_words_of_a_batch_are_written_together() {
    let chunks = (0..500).map(|number| chunk("Number", &format!("the number {number}"))).collect();
    let memory = SqliteMemoryStore::in_memory().unwrap();
    let sources = [source("/a", chunks), source("/b", vec![chunk("", "one more")])];
    memory.replace(&sources, SystemTime::now()).unwrap();
    let pieces = memory.database.read(|connection| {
        connection
            .query_row("SELECT count(DISTINCT segid) FROM memory_words_idx", [], |row| row.get::<_, i64>(0))
    });
    assert_eq!(pieces.unwrap(), 1);
    memory.check().unwrap();
}

#[test]
fn a_directory_at_the_path_of_the_database_is_an_error() {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("directory.db");
    std::fs::create_dir(&directory).unwrap();
    assert!(SqliteMemoryStore::open(&directory).is_err());
    assert!(directory.is_dir());
}

//! What every database of the memory does.

mod sources;
mod vectors;
mod words;

use std::ops::Deref;
use std::sync::Arc;

use hob_db::Database;
use hob_db::postgres::PostgresDatabase;
use hob_testkit::{PostgresServer, TestDatabase};

use super::*;
pub(super) use vectors::{add, add_to, near, scattered, sources_near};

/// A memory. The database of a server is dropped after it.
pub(crate) struct TestMemory {
    store: Arc<dyn MemoryStore>,
    place: Place,
}

enum Place {
    Directory(tempfile::TempDir),
    Server(TestDatabase),
}

impl Deref for TestMemory {
    type Target = dyn MemoryStore;

    fn deref(&self) -> &Self::Target {
        &*self.store
    }
}

impl TestMemory {
    pub(crate) fn store(&self) -> Arc<dyn MemoryStore> {
        Arc::clone(&self.store)
    }

    /// Another store on the same database, as in another process.
    fn another(&self) -> Arc<dyn MemoryStore> {
        self.place.store()
    }
}

impl Place {
    fn store(&self) -> Arc<dyn MemoryStore> {
        match self {
            Place::Directory(directory) => {
                let database = Database::open(&directory.path().join("memory.db"), &[MIGRATIONS]).unwrap();
                Arc::new(SqliteMemoryStore::new(database).unwrap())
            }
            Place::Server(database) => Arc::new(PostgresMemoryStore::new(connect(&database.url()))),
        }
    }
}

pub(crate) fn connect(url: &str) -> PostgresDatabase {
    PostgresDatabase::new(url.parse().unwrap(), &[POSTGRES_MIGRATIONS]).unwrap()
}

/// An empty memory.
pub(crate) type NewMemory = fn() -> TestMemory;

pub(crate) fn sqlite() -> TestMemory {
    let place = Place::Directory(tempfile::tempdir().unwrap());
    TestMemory { store: place.store(), place }
}

pub(crate) fn postgres() -> TestMemory {
    let place = Place::Server(PostgresServer::shared().create_database());
    TestMemory { store: place.store(), place }
}

pub(crate) fn chunk(title: &str, text: &str) -> NewChunk {
    NewChunk { title: title.into(), text: text.into(), line: 1, end_line: 2, tokens: 3 }
}

fn stamp(of: u8) -> SourceStamp {
    SourceStamp { hash: [of; 32], modified: 7, size: 11, recipe: "512/64".into() }
}

pub(crate) fn source(path: &str, chunks: Vec<NewChunk>) -> NewSource {
    NewSource {
        collection: CollectionName::default(),
        path: path.into(),
        title: "a title".into(),
        place: PositionUnit::Line,
        stamp: stamp(1),
        chunks,
    }
}

pub(crate) fn filled(new: NewMemory, sources: &[NewSource]) -> TestMemory {
    let memory = new();
    memory.replace(sources, SystemTime::now()).unwrap();
    memory
}

/// The texts that a question finds, best first.
fn found(memory: &dyn MemoryStore, question: &str) -> Vec<String> {
    let Some(query) = WordQuery::of(question) else { return Vec::new() };
    let hits = memory.find_words(&query, 10).unwrap();
    assert!(hits.is_sorted_by(|one, other| one.score >= other.score), "{hits:?}");
    let ids: Vec<i64> = hits.iter().map(|hit| hit.chunk).collect();
    memory.passages(&ids, Some(&query)).unwrap().into_iter().map(|passage| passage.text).collect()
}

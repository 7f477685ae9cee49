//! How much there is.

use hob_core::time::Moment;
use hob_db::{DatabaseError, Durability};
use serde::Serialize;

use super::MemoryStore;

/// The memory in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemoryFigures {
    pub sources: u64,
    /// Of these, notes that have no file.
    pub notes: u64,
    pub chunks: u64,
    pub tokens: u64,
    /// Bytes of the files, as they were.
    pub source_bytes: u64,
    /// Bytes of the database itself.
    pub database_bytes: u64,
    /// Chunks that can be found by meaning.
    pub vectors: u64,
    /// The models that made the vectors.
    pub models: Vec<String>,
    /// When something was last put in.
    pub last_indexed: Option<Moment>,
}

impl MemoryStore {
    pub fn figures(&self) -> Result<MemoryFigures, DatabaseError> {
        self.database.read(|connection| {
            let mut figures = connection.query_row(
                "SELECT count(*), count(*) FILTER (WHERE path LIKE 'note:%'), coalesce(sum(chunks), 0), \
                     coalesce(sum(tokens), 0), coalesce(sum(size), 0), max(indexed), \
                     (SELECT count(*) FROM memory_code), \
                     (SELECT page_count * page_size FROM pragma_page_count, pragma_page_size) \
                 FROM memory_source",
                [],
                |row| {
                    let number = |index| row.get::<_, i64>(index).map(i64::unsigned_abs);
                    Ok(MemoryFigures {
                        sources: number(0)?,
                        notes: number(1)?,
                        chunks: number(2)?,
                        tokens: number(3)?,
                        source_bytes: number(4)?,
                        database_bytes: number(7)?,
                        vectors: number(6)?,
                        models: Vec::new(),
                        last_indexed: row.get::<_, Option<i64>>(5)?.map(Moment::from_microseconds),
                    })
                },
            )?;
            let mut statement = connection.prepare("SELECT name FROM memory_model ORDER BY name")?;
            figures.models = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
            Ok(figures)
        })
    }

    /// Compares the index of words with the chunks it is of, which takes as long as making it. Fails where they differ.
    pub fn check(&self) -> Result<(), DatabaseError> {
        self.write(Durability::ProcessEnd, |transaction| {
            transaction
                .execute_batch("INSERT INTO memory_words (memory_words, rank) VALUES ('integrity-check', 1)")
        })
    }
}

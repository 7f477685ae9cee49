//! How much there is.

use hob_core::time::Moment;
use hob_db::{DatabaseError, Durability};

use super::memory_file::SqliteMemoryStore;
use crate::store::MemorySize;

pub(super) fn size(store: &SqliteMemoryStore) -> Result<MemorySize, DatabaseError> {
    store.database.read(|connection| {
        let mut size = connection.query_row(
            "SELECT count(*), count(*) FILTER (WHERE path LIKE 'note:%'), coalesce(sum(chunks), 0), \
                 coalesce(sum(tokens), 0), coalesce(sum(size), 0), max(indexed), \
                 (SELECT count(*) FROM memory_code), \
                 (SELECT page_count * page_size FROM pragma_page_count, pragma_page_size) \
             FROM memory_source",
            [],
            |row| {
                let number = |index| row.get::<_, i64>(index).map(i64::unsigned_abs);
                Ok(MemorySize {
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
        size.models = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        Ok(size)
    })
}

pub(super) fn check(store: &SqliteMemoryStore) -> Result<(), DatabaseError> {
    store.write(Durability::ProcessEnd, |transaction| {
        transaction
            .execute_batch("INSERT INTO memory_words (memory_words, rank) VALUES ('integrity-check', 1)")
    })
}

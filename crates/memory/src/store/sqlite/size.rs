//! How much there is.

use hob_core::time::Moment;
use hob_db::{DbResult, Durability};

use super::memory_file::{Scope, SqliteMemoryStore};
use crate::store::MemorySize;
use crate::types::CollectionSize;

pub(super) fn size(store: &SqliteMemoryStore, scope: &Scope) -> DbResult<MemorySize> {
    store.database.read(|connection| {
        let mut size = connection.query_row(
            &format!(
                "SELECT count(*) FILTER (WHERE chunks > 0), count(*) FILTER (WHERE path LIKE 'note:%'), \
                     coalesce(sum(chunks), 0), coalesce(sum(tokens), 0), \
                     coalesce(sum(size) FILTER (WHERE chunks > 0), 0), max(indexed), \
                     (SELECT page_count * page_size FROM pragma_page_count, pragma_page_size) \
                 FROM memory_source WHERE {}",
                scope.condition("id", "?1")
            ),
            [&scope.0],
            |row| {
                let number = |index| row.get::<_, i64>(index).map(i64::unsigned_abs);
                Ok(MemorySize {
                    sources: number(0)?,
                    notes: number(1)?,
                    chunks: number(2)?,
                    tokens: number(3)?,
                    source_bytes: number(4)?,
                    database_bytes: number(6)?,
                    vectors: 0,
                    models: Vec::new(),
                    collections: Vec::new(),
                    last_indexed: row.get::<_, Option<i64>>(5)?.map(Moment::from_microseconds),
                })
            },
        )?;
        // All vectors are counted without a look at their chunks.
        let (models, of_chunks) = match scope.0 {
            None => ("memory_code", String::new()),
            Some(_) => (
                "memory_vector",
                format!(
                    "JOIN memory_chunk ON memory_chunk.id = chunk WHERE {}",
                    scope.condition("memory_chunk.source", "?1")
                ),
            ),
        };
        let mut statement = connection.prepare(&format!(
            "SELECT name, vectors FROM memory_model LEFT JOIN (\
                 SELECT model, count(*) AS vectors FROM {models} {of_chunks} GROUP BY model) AS counted \
                 ON model = memory_model.id \
             WHERE ?1 IS NULL OR vectors > 0 ORDER BY name"
        ))?;
        let rows = statement.query_map([&scope.0], |row| Ok((row.get(0)?, row.get(1)?)))?;
        for row in rows {
            let (name, vectors): (String, Option<i64>) = row?;
            size.models.push(name);
            size.vectors += vectors.unwrap_or(0).unsigned_abs();
        }
        let mut statement = connection.prepare(
            "SELECT name, count(*), coalesce(sum(chunks), 0) FROM memory_collection \
                 JOIN memory_source ON memory_source.id = source \
             WHERE chunks > 0 AND (?1 IS NULL OR name IN (SELECT value FROM json_each(?1))) \
             GROUP BY name ORDER BY name",
        )?;
        let rows = statement.query_map([&scope.0], |row| {
            let number = |index| row.get::<_, i64>(index).map(i64::unsigned_abs);
            Ok(CollectionSize { name: row.get(0)?, sources: number(1)?, chunks: number(2)? })
        })?;
        size.collections = rows.collect::<rusqlite::Result<_>>()?;
        Ok(size)
    })
}

pub(super) fn check(store: &SqliteMemoryStore) -> DbResult<()> {
    store.write(Durability::ProcessEnd, |transaction| {
        transaction
            .execute_batch("INSERT INTO memory_words (memory_words, rank) VALUES ('integrity-check', 1)")
    })
}

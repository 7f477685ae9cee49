//! How much there is, whether it is right, and when it is on the disk.

use hob_core::time::Moment;
use hob_db::DbResult;
use hob_db::postgres::{QueryError, QueryResult, Row};

use super::memory_database::{PostgresMemoryStore, Scope};
use super::vectors::count_vectors;
use super::word_vector::word_vector;
use crate::store::MemorySize;
use crate::types::CollectionSize;

const SIZE: &str = "
    SELECT count(*) FILTER (WHERE chunks > 0), count(*) FILTER (WHERE starts_with(path, 'note:')),
        coalesce(sum(chunks), 0)::bigint, coalesce(sum(tokens), 0)::bigint,
        coalesce(sum(size) FILTER (WHERE chunks > 0), 0)::bigint, max(indexed),
        (SELECT coalesce(sum(pg_total_relation_size(to_regclass(name))), 0)::bigint FROM unnest(ARRAY[
            'memory_source', 'memory_collection', 'memory_chunk', 'memory_words', 'memory_model', 'memory_vector',
            'memory_skipped', 'memory_folder'])
            AS tables (name))
    FROM memory_source WHERE ";

const COLLECTIONS: &str = "
    SELECT name, count(*), coalesce(sum(chunks), 0)::bigint
    FROM memory_collection JOIN memory_source ON memory_source.id = source
    WHERE chunks > 0 AND ($1::text[] IS NULL OR name = ANY($1)) GROUP BY name ORDER BY name";

/// Chunks that are checked at once.
const CHECKED: i64 = 1_000;

pub(super) fn size(store: &PostgresMemoryStore, scope: &Scope) -> DbResult<MemorySize> {
    let sql = format!("{SIZE}{}", scope.has_source("id", "$1"));
    store.database.read(|transaction| {
        let row = transaction.query_one(&sql, &[&scope.0])?;
        let number = |column| row.try_get::<_, i64>(column).map(i64::unsigned_abs);
        let vectors = count_vectors(transaction, scope)?;
        let collections = transaction.query(COLLECTIONS, &[&scope.0])?;
        let collection = |row: &Row| {
            let number = |column| row.try_get::<_, i64>(column).map(i64::unsigned_abs);
            Ok(CollectionSize { name: row.try_get(0)?, sources: number(1)?, chunks: number(2)? })
        };
        Ok(MemorySize {
            sources: number(0)?,
            notes: number(1)?,
            chunks: number(2)?,
            tokens: number(3)?,
            source_bytes: number(4)?,
            database_bytes: number(6)?,
            vectors: vectors.iter().map(|(_, count)| count).sum(),
            models: vectors.into_iter().map(|(model, _)| model).collect(),
            collections: collections.iter().map(collection).collect::<QueryResult<_>>()?,
            last_indexed: row.try_get::<_, Option<i64>>(5)?.map(Moment::from_microseconds),
        })
    })
}

/// The words of each chunk must be those of its text. The index over them is the server's.
pub(super) fn check(store: &PostgresMemoryStore) -> DbResult<()> {
    let mut last = 0;
    loop {
        let checked = store.database.read(|transaction| {
            let rows = transaction.query(
                "SELECT id, title, text, length, tsvectorsend(words) FROM memory_chunk \
                     LEFT JOIN memory_words ON memory_words.chunk = memory_chunk.id \
                 WHERE id > $1 ORDER BY id LIMIT $2",
                &[&last, &CHECKED],
            )?;
            let texts = rows
                .iter()
                .map(|row| Ok((row.try_get(1)?, row.try_get(2)?)))
                .collect::<QueryResult<Vec<(&str, &str)>>>()?;
            let mut newest = None;
            for (row, words) in rows.iter().zip(store.tokenizer.tokenize(&texts)?) {
                let chunk: i64 = row.try_get(0)?;
                let stored = (row.try_get::<_, Option<i64>>(3)?, row.try_get::<_, Option<&[u8]>>(4)?);
                if stored != (Some(words.length as i64), Some(word_vector(&words).as_slice())) {
                    let reason = format!("the words of the chunk {chunk} are not those of its text");
                    return Err(QueryError::unreadable("words", reason));
                }
                newest = Some(chunk);
            }
            Ok(newest)
        })?;
        match checked {
            Some(newest) => last = newest,
            None => return Ok(()),
        }
    }
}

/// A durable commit also makes all earlier ones durable. New words wait in a list that every search reads, until it is cleared.
pub(super) fn sync(store: &PostgresMemoryStore) -> DbResult<()> {
    store.database.write(|transaction| {
        transaction.wait_without_limit()?;
        for index in ["memory_words_index", "memory_words_sample"] {
            transaction.query("SELECT gin_clean_pending_list(to_regclass($1::text))", &[&index])?;
        }
        // A transaction that writes nothing waits for no disk.
        transaction.query("SELECT pg_logical_emit_message(true, 'hob', 'sync')::text", &[])?;
        Ok(())
    })
}

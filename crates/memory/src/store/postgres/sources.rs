//! Sources and their chunks, which are written and deleted in one transaction.
//!
//! Several processes may index one directory at once. Each locks the rows of its sources in the order of their paths, so the last
//! one wins, and no two wait for each other.

use std::collections::HashMap;
use std::time::SystemTime;

use hob_core::CollectionName;
use hob_core::time::Moment;
use hob_db::postgres::{PostgresTransaction, QueryError, QueryResult, Row, ToSql, Type};
use hob_db::{DbResult, Durability};

use super::memory_database::{PostgresMemoryStore, Scope};
use super::tokenizer::Tokenizer;
use super::word_vector::word_vector;
use crate::store::columns::{range_below, stored_size, unit_name};
use crate::store::marks::storable;
use crate::store::{NewSource, RemovedSources, SourceStamp};

/// Keeps the id of a known source, whose row is then locked.
const SAVE_SOURCES: &str = "
    INSERT INTO memory_source (path, title, place, hash, modified, size, recipe, indexed, chunks, tokens, words)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bytea[], $5::bigint[], $6::bigint[], $7::text[],
        $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[]) AS new (path)
    ORDER BY new.path COLLATE \"C\"
    ON CONFLICT (path) DO UPDATE SET
        title = excluded.title, place = excluded.place, hash = excluded.hash, modified = excluded.modified,
        size = excluded.size, recipe = excluded.recipe, indexed = excluded.indexed, chunks = excluded.chunks,
        tokens = excluded.tokens, words = excluded.words
    RETURNING path, id";

const COPY_CHUNKS: &str = "
    COPY memory_chunk (id, source, position, title, text, line, end_line, tokens) FROM STDIN BINARY";

const CHUNK_TYPES: [Type; 8] =
    [Type::INT8, Type::INT8, Type::INT8, Type::TEXT, Type::TEXT, Type::INT8, Type::INT8, Type::INT8];

const COPY_WORDS: &str = "COPY memory_words (chunk, length, words) FROM STDIN BINARY";

/// The words are given in the binary form of their type.
const WORDS_TYPES: [Type; 3] = [Type::INT8, Type::INT8, Type::BYTEA];

const LOCK: &str =
    "SELECT id, chunks FROM memory_source WHERE path = ANY($1) ORDER BY path COLLATE \"C\" FOR UPDATE";

pub(super) fn known_below(store: &PostgresMemoryStore, path: &str) -> DbResult<HashMap<String, SourceStamp>> {
    let (exact, first, end) = range_below(path);
    store.database.read(|transaction| {
        let rows = transaction.query(
            "SELECT path, hash, modified, size, recipe FROM memory_source \
             WHERE path = $1 OR (path >= $2 AND path < $3)",
            &[&exact, &first, &end],
        )?;
        rows.iter().map(stamp).collect()
    })
}

fn stamp(row: &Row) -> QueryResult<(String, SourceStamp)> {
    let hash: &[u8] = row.try_get(1)?;
    let stamp = SourceStamp {
        hash: hash.try_into().map_err(|error| QueryError::unreadable("hash", error))?,
        modified: row.try_get(2)?,
        size: row.try_get::<_, i64>(3)?.unsigned_abs(),
        recipe: row.try_get(4)?,
    };
    Ok((row.try_get(0)?, stamp))
}

/// A chunk as it is copied. Its source is known in the transaction only.
struct ChunkRow<'a> {
    source: usize,
    position: i64,
    title: &'a str,
    text: &'a str,
    line: i64,
    end_line: i64,
    tokens: i64,
    length: i64,
    words: Vec<u8>,
}

pub(super) fn replace(
    store: &PostgresMemoryStore,
    durability: Durability,
    sources: &[NewSource],
    now: SystemTime,
) -> DbResult<()> {
    if sources.is_empty() {
        return Ok(());
    }
    let texts: Vec<_> = sources
        .iter()
        .flat_map(|source| &source.chunks)
        .map(|chunk| (storable(&chunk.title), storable(&chunk.text)))
        .collect();
    let borrowed: Vec<(&str, &str)> = texts.iter().map(|(title, text)| (&**title, &**text)).collect();
    let words = store.explained(store.tokenizer.tokenize(&borrowed))?;
    let chunks = sources.iter().enumerate().flat_map(|(index, source)| {
        source.chunks.iter().enumerate().map(move |(position, chunk)| (index, position, chunk))
    });
    let rows: Vec<ChunkRow<'_>> = chunks
        .zip(borrowed.iter().zip(&words))
        .map(|((source, position, chunk), ((title, text), words))| ChunkRow {
            source,
            position: position as i64,
            title,
            text,
            line: chunk.line.into(),
            end_line: chunk.end_line.into(),
            tokens: chunk.tokens.into(),
            length: words.length as i64,
            words: word_vector(words),
        })
        .collect();
    let indexed = Moment::of(now).microseconds();
    let collections: Vec<&str> = sources.iter().map(|source| source.collection.as_str()).collect();
    store.database.write_with(durability, |transaction| {
        let ids = save_sources(transaction, sources, &rows, indexed)?;
        transaction.execute(
            "INSERT INTO memory_collection (name, source) \
             SELECT * FROM unnest($1::text[], $2::bigint[]) ON CONFLICT DO NOTHING",
            &[&collections, &ids],
        )?;
        transaction.execute("DELETE FROM memory_chunk WHERE source = ANY($1)", &[&ids])?;
        let chunk_ids = transaction.query(
            "SELECT nextval(pg_get_serial_sequence('memory_chunk', 'id')) FROM generate_series(1, $1::bigint)",
            &[&(rows.len() as i64)],
        )?;
        let chunk_ids = chunk_ids.iter().map(|row| row.try_get(0)).collect::<Result<Vec<i64>, _>>()?;
        transaction.copy_in(
            COPY_CHUNKS,
            &CHUNK_TYPES,
            rows.iter().zip(&chunk_ids).map(|(row, id)| -> Vec<&(dyn ToSql + Sync)> {
                let ChunkRow { source, position, title, text, line, end_line, tokens, .. } = row;
                vec![id, &ids[*source], position, title, text, line, end_line, tokens]
            }),
        )?;
        transaction.copy_in(
            COPY_WORDS,
            &WORDS_TYPES,
            rows.iter().zip(&chunk_ids).map(|(row, id)| -> Vec<&(dyn ToSql + Sync)> {
                vec![id, &row.length, &row.words]
            }),
        )?;
        Ok(())
    })
}

/// Adds the words of chunks that were copied from another database, given with title and text.
pub(in crate::store) fn add_words(
    transaction: &mut PostgresTransaction<'_>,
    chunks: &[(i64, String, String)],
) -> QueryResult<()> {
    let texts: Vec<(&str, &str)> = chunks.iter().map(|(_, title, text)| (&**title, &**text)).collect();
    let words = Tokenizer::default().tokenize(&texts)?;
    let rows: Vec<(i64, i64, Vec<u8>)> = chunks
        .iter()
        .zip(&words)
        .map(|((chunk, ..), words)| (*chunk, words.length as i64, word_vector(words)))
        .collect();
    transaction.copy_in(
        COPY_WORDS,
        &WORDS_TYPES,
        rows.iter().map(|(chunk, length, words)| -> Vec<&(dyn ToSql + Sync)> { vec![chunk, length, words] }),
    )?;
    let ids: Vec<i64> = rows.iter().map(|(chunk, ..)| *chunk).collect();
    transaction.execute(
        "UPDATE memory_source SET words = words + new.length FROM ( \
             SELECT source, sum(length)::bigint AS length FROM memory_words JOIN memory_chunk ON id = chunk \
             WHERE chunk = ANY($1) GROUP BY source \
         ) AS new WHERE memory_source.id = new.source",
        &[&ids],
    )?;
    Ok(())
}

/// The ids of the sources, in their order.
fn save_sources(
    transaction: &mut PostgresTransaction<'_>,
    sources: &[NewSource],
    rows: &[ChunkRow<'_>],
    indexed: i64,
) -> QueryResult<Vec<i64>> {
    let mut words = vec![0_i64; sources.len()];
    for row in rows {
        words[row.source] += row.length;
    }
    let strings = |field: fn(&NewSource) -> &str| {
        sources.iter().map(|source| storable(field(source)).into_owned()).collect::<Vec<String>>()
    };
    let numbers = |field: fn(&NewSource) -> i64| sources.iter().map(field).collect::<Vec<i64>>();
    let paths = strings(|source| &source.path);
    let saved = transaction.query(
        SAVE_SOURCES,
        &[
            &paths,
            &strings(|source| &source.title),
            &strings(|source| unit_name(source.place)),
            &sources.iter().map(|source| source.stamp.hash.as_slice()).collect::<Vec<_>>(),
            &numbers(|source| source.stamp.modified),
            &numbers(|source| stored_size(source.stamp.size)),
            &strings(|source| &source.stamp.recipe),
            &vec![indexed; sources.len()],
            &numbers(|source| source.chunks.len() as i64),
            &numbers(|source| source.chunks.iter().map(|chunk| i64::from(chunk.tokens)).sum()),
            &words,
        ],
    )?;
    let ids = saved
        .iter()
        .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
        .collect::<QueryResult<HashMap<&str, i64>>>()?;
    let missing = || QueryError::unreadable("path", "a saved source has no row");
    paths.iter().map(|path| ids.get(path.as_str()).copied().ok_or_else(missing)).collect()
}

pub(super) fn restamp(store: &PostgresMemoryStore, stamps: &[(String, SourceStamp)]) -> DbResult<()> {
    let paths: Vec<&str> = stamps.iter().map(|(path, _)| path.as_str()).collect();
    let modified: Vec<i64> = stamps.iter().map(|(_, stamp)| stamp.modified).collect();
    let sizes: Vec<i64> = stamps.iter().map(|(_, stamp)| stored_size(stamp.size)).collect();
    let hashes: Vec<&[u8]> = stamps.iter().map(|(_, stamp)| stamp.hash.as_slice()).collect();
    store.database.write_with(Durability::ProcessEnd, |transaction| {
        transaction.query(LOCK, &[&paths])?;
        transaction.execute(
            "UPDATE memory_source SET modified = new.modified, size = new.size \
             FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bytea[]) AS new (path, modified, size, hash) \
             WHERE memory_source.path = new.path AND memory_source.hash = new.hash",
            &[&paths, &modified, &sizes, &hashes],
        )?;
        Ok(())
    })
}

pub(super) fn remove(store: &PostgresMemoryStore, paths: &[String]) -> DbResult<RemovedSources> {
    store.database.write_with(Durability::ProcessEnd, |transaction| {
        let rows = transaction.query(LOCK, &[&paths])?;
        let (mut ids, mut chunks) = (Vec::with_capacity(rows.len()), 0);
        for row in &rows {
            ids.push(row.try_get::<_, i64>(0)?);
            chunks += row.try_get::<_, i64>(1)?.unsigned_abs();
        }
        transaction.execute("DELETE FROM memory_source WHERE id = ANY($1)", &[&ids])?;
        Ok(RemovedSources { sources: ids.len() as u64, chunks })
    })
}

pub(super) fn add_to_collection(
    store: &PostgresMemoryStore,
    collection: &CollectionName,
    paths: &[String],
) -> DbResult<()> {
    store.database.write_with(Durability::ProcessEnd, |transaction| {
        transaction.query(LOCK, &[&paths])?;
        transaction.execute(
            "INSERT INTO memory_collection (name, source) \
             SELECT $1::text, id FROM memory_source WHERE path = ANY($2) ON CONFLICT DO NOTHING",
            &[&collection.as_str(), &paths],
        )?;
        Ok(())
    })
}

pub(super) fn remove_from_collection(
    store: &PostgresMemoryStore,
    collection: &CollectionName,
    paths: &[String],
) -> DbResult<RemovedSources> {
    store.database.write_with(Durability::ProcessEnd, |transaction| {
        let locked = transaction.query(LOCK, &[&paths])?;
        let ids = locked.iter().map(|row| row.try_get(0)).collect::<Result<Vec<i64>, _>>()?;
        let removed = transaction.query(
            "DELETE FROM memory_collection USING memory_source \
             WHERE memory_source.id = source AND name = $1 AND source = ANY($2) RETURNING source, chunks",
            &[&collection.as_str(), &ids],
        )?;
        let (mut gone, mut chunks) = (Vec::with_capacity(removed.len()), 0);
        for row in &removed {
            gone.push(row.try_get::<_, i64>(0)?);
            chunks += row.try_get::<_, i64>(1)?.unsigned_abs();
        }
        transaction.execute(
            "DELETE FROM memory_source WHERE id = ANY($1) \
                 AND NOT EXISTS (SELECT FROM memory_collection WHERE source = memory_source.id)",
            &[&gone],
        )?;
        Ok(RemovedSources { sources: gone.len() as u64, chunks })
    })
}

pub(super) fn paths_below(
    store: &PostgresMemoryStore,
    path: &str,
    scope: &Scope,
    count: usize,
) -> DbResult<Vec<String>> {
    let (exact, first, end) = range_below(path);
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    let sql = format!(
        "SELECT path FROM memory_source WHERE (path = $1 OR (path >= $2 AND path < $3)) AND {} LIMIT $4",
        scope.has_source("id", "$5")
    );
    store.database.read(|transaction| {
        let rows = transaction.query(&sql, &[&exact, &first, &end, &count, &scope.0])?;
        rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
    })
}

//! Sources and their chunks, which are written and deleted in one transaction.

use std::collections::HashMap;
use std::time::SystemTime;

use hob_core::time::Moment;
use hob_db::{DatabaseError, Durability};
use rusqlite::{OptionalExtension, Transaction, params};

use super::memory_file::SqliteMemoryStore;
use super::vectors::shorten_deleted_list;
use super::words;
use crate::store::columns::{range_below, stored_size, unit_name};
use crate::store::marks::storable;
use crate::store::{NewChunk, NewSource, RemovedSources, SourceStamp};

pub(super) fn known_below(
    store: &SqliteMemoryStore,
    path: &str,
) -> Result<HashMap<String, SourceStamp>, DatabaseError> {
    let (exact, first, end) = range_below(path);
    store.database.read(|connection| {
        let mut statement = connection.prepare_cached(
            "SELECT path, hash, modified, size, recipe FROM memory_source \
             WHERE path = ?1 OR (path >= ?2 AND path < ?3)",
        )?;
        let rows = statement.query_map([exact, &first, &end], |row| {
            let stamp = SourceStamp {
                hash: row.get(1)?,
                modified: row.get(2)?,
                size: row.get::<_, i64>(3)?.unsigned_abs(),
                recipe: row.get(4)?,
            };
            Ok((row.get(0)?, stamp))
        })?;
        rows.collect()
    })
}

pub(super) fn replace(
    store: &SqliteMemoryStore,
    sources: &[NewSource],
    now: SystemTime,
) -> Result<(), DatabaseError> {
    replace_with(store, Durability::ProcessEnd, sources, now)
}

pub(super) fn save(
    store: &SqliteMemoryStore,
    source: &NewSource,
    now: SystemTime,
) -> Result<(), DatabaseError> {
    replace_with(store, Durability::PowerCut, std::slice::from_ref(source), now)
}

fn replace_with(
    store: &SqliteMemoryStore,
    durability: Durability,
    sources: &[NewSource],
    now: SystemTime,
) -> Result<(), DatabaseError> {
    let indexed = Moment::of(now).microseconds();
    store.write(durability, |transaction| {
        // Deletions flush the word index, so all of them come first.
        for source in sources {
            remove_source(transaction, &source.path)?;
        }
        for source in sources {
            insert_source(transaction, source, indexed)?;
        }
        shorten_deleted_list(transaction)
    })
}

pub(super) fn restamp(
    store: &SqliteMemoryStore,
    stamps: &[(String, SourceStamp)],
) -> Result<(), DatabaseError> {
    store.write(Durability::ProcessEnd, |transaction| {
        let mut statement = transaction.prepare_cached(
            "UPDATE memory_source SET modified = ?2, size = ?3 WHERE path = ?1 AND hash = ?4",
        )?;
        for (path, stamp) in stamps {
            statement.execute(params![path, stamp.modified, stored_size(stamp.size), stamp.hash])?;
        }
        Ok(())
    })
}

pub(super) fn remove(store: &SqliteMemoryStore, paths: &[String]) -> Result<RemovedSources, DatabaseError> {
    store.write(Durability::ProcessEnd, |transaction| {
        let mut removed = RemovedSources::default();
        for path in paths {
            if let Some(chunks) = remove_source(transaction, path)? {
                removed.sources += 1;
                removed.chunks += chunks;
            }
        }
        shorten_deleted_list(transaction)?;
        Ok(removed)
    })
}

pub(super) fn paths_below(
    store: &SqliteMemoryStore,
    path: &str,
    count: usize,
) -> Result<Vec<String>, DatabaseError> {
    let (exact, first, end) = range_below(path);
    store.database.read(|connection| {
        let mut statement = connection.prepare_cached(
            "SELECT path FROM memory_source WHERE path = ?1 OR (path >= ?2 AND path < ?3) LIMIT ?4",
        )?;
        let rows = statement.query_map(params![exact, first, end, count as i64], |row| row.get(0))?;
        rows.collect()
    })
}

/// The number of its chunks; `None` if it was not known.
fn remove_source(transaction: &Transaction<'_>, path: &str) -> rusqlite::Result<Option<u64>> {
    let id: Option<i64> = transaction
        .prepare_cached("SELECT id FROM memory_source WHERE path = ?1")?
        .query_row([path], |row| row.get(0))
        .optional()?;
    let Some(id) = id else { return Ok(None) };
    let chunks = transaction.prepare_cached("DELETE FROM memory_chunk WHERE source = ?1")?.execute([id])?;
    transaction.prepare_cached("DELETE FROM memory_source WHERE id = ?1")?.execute([id])?;
    Ok(Some(chunks as u64))
}

fn insert_source(transaction: &Transaction<'_>, source: &NewSource, indexed: i64) -> rusqlite::Result<()> {
    let NewSource { path, title, place, stamp, chunks } = source;
    let tokens: i64 = chunks.iter().map(|chunk| i64::from(chunk.tokens)).sum();
    transaction
        .prepare_cached(
            "INSERT INTO memory_source (path, title, place, hash, modified, size, recipe, indexed, chunks, \
             tokens) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )?
        .execute(params![
            path,
            title,
            unit_name(*place),
            stamp.hash,
            stamp.modified,
            stored_size(stamp.size),
            stamp.recipe,
            indexed,
            chunks.len() as i64,
            tokens
        ])?;
    let id = transaction.last_insert_rowid();
    let mut statement = transaction.prepare_cached(
        "INSERT INTO memory_chunk (source, position, title, text, line, end_line, tokens) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    for (position, chunk) in chunks.iter().enumerate() {
        let (title, text) = (storable(&chunk.title), storable(&chunk.text));
        let NewChunk { line, end_line, tokens, .. } = chunk;
        statement.execute(params![id, position as i64, title, text, line, end_line, tokens])?;
        words::insert(transaction, transaction.last_insert_rowid(), &title, &text)?;
    }
    Ok(())
}

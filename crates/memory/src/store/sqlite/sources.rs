//! Sources and their chunks, which are written and deleted in one transaction.

use std::collections::HashMap;
use std::time::SystemTime;

use hob_core::CollectionName;
use hob_core::time::Moment;
use hob_db::{DbResult, Durability};
use rusqlite::{OptionalExtension, Transaction, params};

use super::memory_file::{Scope, SqliteMemoryStore};
use super::vectors::shorten_deleted_list;
use super::words;
use crate::store::columns::{range_below, stored_size, unit_name};
use crate::store::marks::storable;
use crate::store::{NewChunk, NewSource, RemovedSources, SourceStamp};

pub(super) fn known_below(store: &SqliteMemoryStore, path: &str) -> DbResult<HashMap<String, SourceStamp>> {
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

pub(super) fn replace(store: &SqliteMemoryStore, sources: &[NewSource], now: SystemTime) -> DbResult<()> {
    replace_with(store, Durability::ProcessEnd, sources, now)
}

pub(super) fn save(store: &SqliteMemoryStore, source: &NewSource, now: SystemTime) -> DbResult<()> {
    replace_with(store, Durability::PowerCut, std::slice::from_ref(source), now)
}

fn replace_with(
    store: &SqliteMemoryStore,
    durability: Durability,
    sources: &[NewSource],
    now: SystemTime,
) -> DbResult<()> {
    let indexed = Moment::of(now).microseconds();
    store.write(durability, |transaction| {
        // Deletions flush the word index, so all of them come first.
        let mut remove_chunks = transaction.prepare_cached(
            "DELETE FROM memory_chunk WHERE source = (SELECT id FROM memory_source WHERE path = ?1)",
        )?;
        for source in sources {
            remove_chunks.execute([&source.path])?;
        }
        // So do statements that can fail after a part of their work, such as those of a collection.
        let mut ids = Vec::with_capacity(sources.len());
        for source in sources {
            ids.push(insert_source(transaction, source, indexed)?);
        }
        for (source, id) in sources.iter().zip(ids) {
            insert_chunks(transaction, id, &source.chunks)?;
        }
        shorten_deleted_list(transaction)
    })
}

pub(super) fn restamp(store: &SqliteMemoryStore, stamps: &[(String, SourceStamp)]) -> DbResult<()> {
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

pub(super) fn remove(store: &SqliteMemoryStore, paths: &[String]) -> DbResult<RemovedSources> {
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

pub(super) fn add_to_collection(
    store: &SqliteMemoryStore,
    collection: &CollectionName,
    paths: &[String],
) -> DbResult<()> {
    store.write(Durability::ProcessEnd, |transaction| {
        let mut statement = transaction.prepare_cached(
            "INSERT INTO memory_collection (name, source) SELECT ?1, id FROM memory_source WHERE path = ?2 \
             ON CONFLICT DO NOTHING",
        )?;
        for path in paths {
            statement.execute([collection.as_str(), path])?;
        }
        Ok(())
    })
}

pub(super) fn remove_from_collection(
    store: &SqliteMemoryStore,
    collection: &CollectionName,
    paths: &[String],
) -> DbResult<RemovedSources> {
    store.write(Durability::ProcessEnd, |transaction| {
        let mut find = transaction.prepare_cached("SELECT id, chunks FROM memory_source WHERE path = ?1")?;
        let mut remove =
            transaction.prepare_cached("DELETE FROM memory_collection WHERE name = ?1 AND source = ?2")?;
        let mut is_elsewhere = transaction
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM memory_collection WHERE source = ?1)")?;
        let mut removed = RemovedSources::default();
        for path in paths {
            let found: Option<(i64, i64)> =
                find.query_row([path], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
            let Some((id, chunks)) = found else { continue };
            if remove.execute(params![collection.as_str(), id])? == 0 {
                continue;
            }
            removed.sources += 1;
            removed.chunks += chunks.unsigned_abs();
            if !is_elsewhere.query_row([id], |row| row.get::<_, bool>(0))? {
                remove_source(transaction, path)?;
            }
        }
        shorten_deleted_list(transaction)?;
        Ok(removed)
    })
}

pub(super) fn paths_below(
    store: &SqliteMemoryStore,
    path: &str,
    scope: &Scope,
    count: usize,
) -> DbResult<Vec<String>> {
    let (exact, first, end) = range_below(path);
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    store.database.read(|connection| {
        let mut statement = connection.prepare_cached(&format!(
            "SELECT path FROM memory_source WHERE (path = ?1 OR (path >= ?2 AND path < ?3)) AND {} LIMIT ?4",
            scope.condition("id", "?5")
        ))?;
        let rows = statement.query_map(params![exact, first, end, count, scope.0], |row| row.get(0))?;
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

/// Its id. A known source keeps it, and so its collections.
fn insert_source(transaction: &Transaction<'_>, source: &NewSource, indexed: i64) -> rusqlite::Result<i64> {
    let NewSource { collection, path, title, place, stamp, chunks } = source;
    let tokens: i64 = chunks.iter().map(|chunk| i64::from(chunk.tokens)).sum();
    let id: i64 = transaction
        .prepare_cached(
            "INSERT INTO memory_source (path, title, place, hash, modified, size, recipe, indexed, chunks, \
             tokens) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) \
             ON CONFLICT (path) DO UPDATE SET title = excluded.title, place = excluded.place, \
                 hash = excluded.hash, modified = excluded.modified, size = excluded.size, \
                 recipe = excluded.recipe, indexed = excluded.indexed, chunks = excluded.chunks, \
                 tokens = excluded.tokens \
             RETURNING id",
        )?
        .query_row(
            params![
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
            ],
            |row| row.get(0),
        )?;
    transaction
        .prepare_cached(
            "INSERT INTO memory_collection (name, source) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
        )?
        .execute(params![collection.as_str(), id])?;
    Ok(id)
}

fn insert_chunks(transaction: &Transaction<'_>, source: i64, chunks: &[NewChunk]) -> rusqlite::Result<()> {
    let mut statement = transaction.prepare_cached(
        "INSERT INTO memory_chunk (source, position, title, text, line, end_line, tokens) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    for (position, chunk) in chunks.iter().enumerate() {
        let (title, text) = (storable(&chunk.title), storable(&chunk.text));
        let NewChunk { line, end_line, tokens, .. } = chunk;
        statement.execute(params![source, position as i64, title, text, line, end_line, tokens])?;
        words::insert(transaction, transaction.last_insert_rowid(), &title, &text)?;
    }
    Ok(())
}

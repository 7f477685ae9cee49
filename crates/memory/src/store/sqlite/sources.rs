//! What is known of which file. A source's chunks come and go together, in one transaction.

use std::borrow::Cow;
use std::collections::HashMap;
use std::time::SystemTime;

use hob_core::time::Moment;
use hob_db::{DatabaseError, Durability};
use rusqlite::{OptionalExtension, Transaction, params};

use super::passages::{MARK_END, MARK_START, place_name};
use super::vectors::shorten_list_of_gone;
use super::{MemoryStore, words};
use crate::types::PassagePlace;

/// By what a file is known to be the same as last time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    pub hash: [u8; 32],
    /// Nanoseconds since 1970.
    pub modified: i64,
    pub size: u64,
    /// How its text was cut.
    pub recipe: String,
}

/// A source with all its chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSource {
    pub path: String,
    pub title: String,
    pub place: PassagePlace,
    pub stamp: Stamp,
    pub chunks: Vec<NewChunk>,
}

/// A piece of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewChunk {
    pub title: String,
    pub text: String,
    pub line: u32,
    pub end_line: u32,
    pub tokens: u32,
}

/// What was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Forgotten {
    pub sources: u64,
    pub chunks: u64,
}

impl MemoryStore {
    /// What is known of `path` and of everything below it.
    pub fn known_below(&self, path: &str) -> Result<HashMap<String, Stamp>, DatabaseError> {
        let (exact, first, end) = range(path);
        self.database.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT path, hash, modified, size, recipe FROM memory_source \
                 WHERE path = ?1 OR (path >= ?2 AND path < ?3)",
            )?;
            let rows = statement.query_map([exact, &first, &end], |row| {
                let stamp = Stamp {
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

    /// Puts sources in, all of them or none, each of another path; what was known of their paths goes. A power cut may take
    /// them before [`Self::sync`].
    pub fn replace(&self, sources: &[NewSource], now: SystemTime) -> Result<(), DatabaseError> {
        self.replace_with(Durability::ProcessEnd, sources, now)
    }

    /// The same with one source that is nowhere else: it is on the disk when this returns.
    pub fn save(&self, source: &NewSource, now: SystemTime) -> Result<(), DatabaseError> {
        self.replace_with(Durability::PowerCut, std::slice::from_ref(source), now)
    }

    fn replace_with(
        &self,
        durability: Durability,
        sources: &[NewSource],
        now: SystemTime,
    ) -> Result<(), DatabaseError> {
        let indexed = Moment::of(now).microseconds();
        self.write(durability, |transaction| {
            // Each removal makes the index of words write down what it has, so all of them come first.
            for source in sources {
                remove(transaction, &source.path)?;
            }
            for source in sources {
                insert(transaction, source, indexed)?;
            }
            shorten_list_of_gone(transaction)
        })
    }

    /// The files are the same as before, only their dates are not.
    pub fn restamp(&self, stamps: &[(String, Stamp)]) -> Result<(), DatabaseError> {
        self.write(Durability::ProcessEnd, |transaction| {
            let mut statement = transaction.prepare_cached(
                "UPDATE memory_source SET modified = ?2, size = ?3 WHERE path = ?1 AND hash = ?4",
            )?;
            for (path, stamp) in stamps {
                statement.execute(params![path, stamp.modified, stored(stamp.size), stamp.hash])?;
            }
            Ok(())
        })
    }

    /// Removes single sources.
    pub fn remove(&self, paths: &[String]) -> Result<Forgotten, DatabaseError> {
        self.write(Durability::ProcessEnd, |transaction| {
            let mut forgotten = Forgotten::default();
            for path in paths {
                if let Some(chunks) = remove(transaction, path)? {
                    forgotten.sources += 1;
                    forgotten.chunks += chunks;
                }
            }
            shorten_list_of_gone(transaction)?;
            Ok(forgotten)
        })
    }

    /// Some sources at `path` or below it, at most `count`.
    pub fn paths_below(&self, path: &str, count: usize) -> Result<Vec<String>, DatabaseError> {
        let (exact, first, end) = range(path);
        self.database.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT path FROM memory_source WHERE path = ?1 OR (path >= ?2 AND path < ?3) LIMIT ?4",
            )?;
            let rows = statement.query_map(params![exact, first, end, count as i64], |row| row.get(0))?;
            rows.collect()
        })
    }
}

/// The path itself, the first path below it, and the first behind all of these.
fn range(path: &str) -> (&str, String, String) {
    const SEPARATOR: char = std::path::MAIN_SEPARATOR;
    let exact = if path.len() > 1 { path.trim_end_matches(SEPARATOR) } else { path };
    let stem = exact.trim_end_matches(SEPARATOR);
    let behind = char::from_u32(SEPARATOR as u32 + 1).unwrap_or(char::MAX);
    (exact, format!("{stem}{SEPARATOR}"), format!("{stem}{behind}"))
}

/// How many chunks went with it; `None` when nothing was known of it.
fn remove(transaction: &Transaction<'_>, path: &str) -> rusqlite::Result<Option<u64>> {
    let id: Option<i64> = transaction
        .prepare_cached("SELECT id FROM memory_source WHERE path = ?1")?
        .query_row([path], |row| row.get(0))
        .optional()?;
    let Some(id) = id else { return Ok(None) };
    let chunks = transaction.prepare_cached("DELETE FROM memory_chunk WHERE source = ?1")?.execute([id])?;
    transaction.prepare_cached("DELETE FROM memory_source WHERE id = ?1")?.execute([id])?;
    Ok(Some(chunks as u64))
}

fn insert(transaction: &Transaction<'_>, source: &NewSource, indexed: i64) -> rusqlite::Result<()> {
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
            place_name(*place),
            stamp.hash,
            stamp.modified,
            stored(stamp.size),
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
        let (title, text) = (unmarked(&chunk.title), unmarked(&chunk.text));
        let NewChunk { line, end_line, tokens, .. } = chunk;
        statement.execute(params![id, position as i64, title, text, line, end_line, tokens])?;
        words::insert(transaction, transaction.last_insert_rowid(), &title, &text)?;
    }
    Ok(())
}

fn stored(size: u64) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

/// The text without the two control characters that mark what was found in it.
fn unmarked(text: &str) -> Cow<'_, str> {
    const MARKS: [char; 2] = [MARK_START, MARK_END];
    if text.contains(MARKS) { Cow::Owned(text.replace(MARKS, " ")) } else { Cow::Borrowed(text) }
}

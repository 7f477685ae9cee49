//! The text of chunks, with marked words of a question.

use hob_db::DbResult;
use rusqlite::{Connection, OptionalExtension, params};

use super::memory_file::SqliteSnapshot;
use crate::store::StoredPassage;
use crate::store::columns::unit_of;
use crate::store::marks::{MARK_END, MARK_START, marks};
use crate::word_query::WordQuery;

/// The chunks with these ids, in order. Missing chunks are skipped.
pub(super) fn passages(
    snapshot: &SqliteSnapshot<'_>,
    chunks: &[i64],
    query: Option<&WordQuery>,
) -> DbResult<Vec<StoredPassage>> {
    snapshot.explained(|connection| {
        let mut passages = Vec::with_capacity(chunks.len());
        for chunk in chunks {
            passages.extend(read(connection, *chunk, query)?);
        }
        Ok(passages)
    })
}

fn read(
    connection: &Connection,
    chunk: i64,
    query: Option<&WordQuery>,
) -> rusqlite::Result<Option<StoredPassage>> {
    let mut passage = connection
        .prepare_cached(
            "SELECT path, memory_chunk.title, text, position, line, end_line, memory_chunk.tokens, place \
             FROM memory_chunk JOIN memory_source ON memory_source.id = source WHERE memory_chunk.id = ?1",
        )?
        .query_row([chunk], |row| {
            Ok(StoredPassage {
                chunk,
                source: row.get(0)?,
                title: row.get(1)?,
                text: row.get(2)?,
                position: row.get(3)?,
                place: unit_of(row.get_ref(7)?.as_str()?),
                line: row.get(4)?,
                end_line: row.get(5)?,
                tokens: row.get(6)?,
                marks: Vec::new(),
            })
        })
        .optional()?;
    let (Some(found), Some(query)) = (&mut passage, query) else { return Ok(passage) };
    let marked: Option<String> = connection
        .prepare_cached(
            "SELECT highlight(memory_words, 1, ?3, ?4) FROM memory_words WHERE memory_words MATCH ?1 AND rowid = ?2",
        )?
        .query_row(params![query.any(), chunk, MARK_START.to_string(), MARK_END.to_string()], |row| row.get(0))
        .optional()?;
    found.marks = marked.map(|marked| marks(&marked)).unwrap_or_default();
    Ok(passage)
}

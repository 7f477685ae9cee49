//! The text of chunks, with marked words of a question.

use hob_db::DbResult;
use hob_db::postgres::{QueryError, QueryResult, Row};

use super::memory_database::PostgresSnapshot;
use crate::store::StoredPassage;
use crate::store::columns::unit_of;
use crate::word_query::WordQuery;

const PASSAGES: &str = "
    SELECT memory_chunk.id, path, memory_chunk.title, text, position, line, end_line, memory_chunk.tokens, place
    FROM unnest($1::bigint[]) WITH ORDINALITY AS wanted (chunk, rank)
        JOIN memory_chunk ON memory_chunk.id = wanted.chunk
        JOIN memory_source ON memory_source.id = source
    ORDER BY wanted.rank";

/// The chunks with these ids, in order. Missing chunks are skipped.
pub(super) fn passages(
    snapshot: &PostgresSnapshot<'_, '_>,
    chunks: &[i64],
    query: Option<&WordQuery>,
) -> DbResult<Vec<StoredPassage>> {
    snapshot.run(|transaction| {
        let rows = transaction.query(PASSAGES, &[&chunks])?;
        let mut passages = rows.iter().map(passage).collect::<Result<Vec<_>, _>>()?;
        if let Some(query) = query.filter(|_| !passages.is_empty()) {
            let texts: Vec<&str> = passages.iter().map(|passage| passage.text.as_str()).collect();
            let marks = snapshot.store.tokenizer.marks(&texts, &query.any())?;
            for (passage, marks) in passages.iter_mut().zip(marks) {
                passage.marks = marks;
            }
        }
        Ok(passages)
    })
}

fn passage(row: &Row) -> QueryResult<StoredPassage> {
    let number = |column: usize, name| {
        let number: i64 = row.try_get(column)?;
        u32::try_from(number).map_err(|error| QueryError::unreadable(name, error))
    };
    Ok(StoredPassage {
        chunk: row.try_get(0)?,
        source: row.try_get(1)?,
        title: row.try_get(2)?,
        text: row.try_get(3)?,
        position: number(4, "position")?,
        line: number(5, "line")?,
        end_line: number(6, "end_line")?,
        tokens: number(7, "tokens")?,
        place: unit_of(row.try_get(8)?),
        marks: Vec::new(),
    })
}

//! Word search in a collection of few chunks whose ids lie among those of many others. Reads only its own chunks: a search over the
//! whole range of ids, and the ranks of the index itself, would take time in proportion to the memory.

use rusqlite::{Connection, params};

use super::memory_file::Scope;
use crate::store::ChunkHit;
use crate::store::marks::MARK_START;
use crate::word_plan::{TEXT_WEIGHT, TITLE_WEIGHT};

/// Ids of other chunks between two of the collection that are passed over rather than skipped: a new search costs about as much.
const GAP: i64 = 16;

/// The words of so many chunks are counted. Of more common words it is only known whether a chunk has them.
const MAX_COUNTED: usize = 2_000;

/// The usual constants of BM25.
const SATURATION: f64 = 1.2;
const LENGTH_PART: f64 = 0.75;

/// Finds the chunks of a range that have a word.
pub(super) const FIND_IN_RANGE: &str =
    "SELECT rowid FROM memory_words WHERE memory_words MATCH ?1 AND rowid >= ?2 AND rowid <= ?3";

/// A chunk of the collection.
struct OwnChunk {
    id: i64,
    tokens: f64,
}

/// A word, and the places of the chunks that have it.
struct FoundTerm<'a> {
    term: &'a str,
    places: Vec<usize>,
}

/// The best chunks, by BM25 with the counts of the collection.
pub(super) fn find_words(
    connection: &Connection,
    scope: &Scope,
    terms: &[String],
    count: usize,
) -> rusqlite::Result<Vec<ChunkHit>> {
    let chunks = read_chunks(connection, scope)?;
    let ranges = ranges(&chunks);
    let mut found = Vec::with_capacity(terms.len());
    for term in terms {
        found.push(FoundTerm { term, places: places(connection, term, &chunks, &ranges)? });
    }
    // Rare words count most, so they are counted exactly.
    found.sort_by_key(|found| found.places.len());
    let all = chunks.len() as f64;
    let usual_length = (chunks.iter().map(|chunk| chunk.tokens).sum::<f64>() / all).max(1.0);
    let mut scores = vec![0.0; chunks.len()];
    let mut counted = 0;
    for FoundTerm { term, places } in found {
        let with_term = places.len() as f64;
        let rarity = ((all - with_term + 0.5) / (with_term + 0.5)).ln_1p();
        counted += places.len();
        for place in places {
            let chunk = &chunks[place];
            let frequency = match counted <= MAX_COUNTED {
                true => frequency(connection, term, chunk.id)?,
                false => TEXT_WEIGHT,
            };
            let length = 1.0 - LENGTH_PART + LENGTH_PART * chunk.tokens / usual_length;
            scores[place] += rarity * frequency * (SATURATION + 1.0) / (frequency + SATURATION * length);
        }
    }
    let hits = chunks.iter().zip(scores).filter(|(_, score)| *score > 0.0);
    let mut hits: Vec<ChunkHit> = hits.map(|(chunk, score)| ChunkHit { chunk: chunk.id, score }).collect();
    hits.sort_by(|one, other| other.score.total_cmp(&one.score).then(one.chunk.cmp(&other.chunk)));
    hits.truncate(count);
    Ok(hits)
}

/// The chunks of the scope, by id.
fn read_chunks(connection: &Connection, scope: &Scope) -> rusqlite::Result<Vec<OwnChunk>> {
    let condition = scope.condition("source", "?1");
    let sql = format!("SELECT id, tokens FROM memory_chunk WHERE {condition} ORDER BY id");
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map([&scope.0], |row| {
        Ok(OwnChunk { id: row.get(0)?, tokens: row.get::<_, i64>(1)? as f64 })
    })?;
    rows.collect()
}

/// The first and last ids of ranges that are searched at once.
fn ranges(chunks: &[OwnChunk]) -> Vec<(i64, i64)> {
    let mut ranges: Vec<(i64, i64)> = Vec::new();
    for OwnChunk { id, .. } in chunks {
        match ranges.last_mut() {
            Some((_, last)) if *id - *last <= GAP => *last = *id,
            _ => ranges.push((*id, *id)),
        }
    }
    ranges
}

/// The places of the chunks that have the word.
fn places(
    connection: &Connection,
    term: &str,
    chunks: &[OwnChunk],
    ranges: &[(i64, i64)],
) -> rusqlite::Result<Vec<usize>> {
    let mut statement = connection.prepare_cached(FIND_IN_RANGE)?;
    let mut places = Vec::new();
    for (first, last) in ranges {
        let mut rows = statement.query(params![term, first, last])?;
        while let Some(row) = rows.next()? {
            let id: i64 = row.get(0)?;
            places.extend(chunks.binary_search_by_key(&id, |chunk| chunk.id).ok());
        }
    }
    Ok(places)
}

/// How often a chunk has the word, in its title and in its text.
fn frequency(connection: &Connection, term: &str, chunk: i64) -> rusqlite::Result<f64> {
    let mut statement = connection.prepare_cached(
        "SELECT highlight(memory_words, 0, ?3, ''), highlight(memory_words, 1, ?3, '') FROM memory_words \
         WHERE memory_words MATCH ?1 AND rowid = ?2",
    )?;
    statement.query_row(params![term, chunk, MARK_START.to_string()], |row| {
        let marked = |column: usize| -> rusqlite::Result<f64> {
            Ok(row.get::<_, String>(column)?.matches(MARK_START).count() as f64)
        };
        Ok(TITLE_WEIGHT * marked(0)? + TEXT_WEIGHT * marked(1)?)
    })
}

#[cfg(test)]
mod tests {
    use crate::store::sqlite::small_collection::{GAP, OwnChunk, ranges};

    #[test]
    fn near_ids_are_searched_together() {
        let of =
            |ids: &[i64]| ranges(&ids.iter().map(|id| OwnChunk { id: *id, tokens: 1.0 }).collect::<Vec<_>>());
        assert_eq!(of(&[]), []);
        assert_eq!(of(&[7]), [(7, 7)]);
        assert_eq!(
            of(&[1, 2, 3, 3 + GAP, 4 + 2 * GAP, 5 + 2 * GAP]),
            [(1, 3 + GAP), (4 + 2 * GAP, 5 + 2 * GAP)]
        );
    }
}

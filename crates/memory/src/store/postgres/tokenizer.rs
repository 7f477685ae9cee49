//! The words of a text, as both databases index them.
//!
//! SQLite's full-text search has the tokenizer: it splits by Unicode, ignores case and accents, and reduces English words to their
//! stems. A private table in memory tokenizes for PostgreSQL, so that a question finds the same chunks in both.

use std::ops::Range;

use hob_db::postgres::{QueryError, QueryResult};
use parking_lot::Mutex;
use rusqlite::{Connection, params};

use crate::store::marks::{MARK_END, MARK_START, marks};

/// The tokenizer of `memory_words` in SQLite. The second table keeps texts to mark their words.
const TABLES: &str = "
    CREATE VIRTUAL TABLE tokens USING fts5 (
        title, text, content = '', tokenize = 'porter unicode61 remove_diacritics 2'
    );
    CREATE VIRTUAL TABLE instances USING fts5vocab (tokens, instance);
    CREATE VIRTUAL TABLE passages USING fts5 (text, tokenize = 'porter unicode61 remove_diacritics 2');";

/// One for each thread that tokenizes at the same time.
#[derive(Default)]
pub(super) struct Tokenizer {
    idle: Mutex<Vec<Connection>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Title,
    Text,
}

/// The words of one chunk.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ChunkWords {
    /// Each different word once, in the order of bytes, with its places from 0.
    pub(super) words: Vec<(String, Vec<(Field, usize)>)>,
    /// The number of words of the title.
    pub(super) title_length: usize,
    /// The number of words.
    pub(super) length: usize,
}

impl Tokenizer {
    /// The words of each chunk, given as title and text.
    pub(super) fn tokenize(&self, chunks: &[(&str, &str)]) -> QueryResult<Vec<ChunkWords>> {
        self.with_connection(|connection| {
            let mut insert =
                connection.prepare_cached("INSERT INTO tokens (rowid, title, text) VALUES (?1, ?2, ?3)")?;
            for (index, (title, text)) in chunks.iter().enumerate() {
                insert.execute(params![index as i64, title, text])?;
            }
            let mut read = connection.prepare_cached("SELECT term, doc, col, offset FROM instances")?;
            let mut rows = read.query([])?;
            let mut all: Vec<ChunkWords> = chunks.iter().map(|_| ChunkWords::default()).collect();
            // Ordered by word, and by place within a chunk.
            while let Some(row) = rows.next()? {
                let word = row.get_ref(0)?.as_str()?;
                let index = usize::try_from(row.get::<_, i64>(1)?).unwrap_or(usize::MAX);
                let Some(chunk) = all.get_mut(index) else { continue };
                let field = if row.get_ref(2)?.as_str()? == "title" { Field::Title } else { Field::Text };
                let place = (field, usize::try_from(row.get::<_, i64>(3)?).unwrap_or(usize::MAX));
                chunk.length += 1;
                chunk.title_length += usize::from(field == Field::Title);
                match chunk.words.last_mut() {
                    Some((last, places)) if last == word => places.push(place),
                    _ => chunk.words.push((word.to_owned(), vec![place])),
                }
            }
            Ok(all)
        })
    }

    /// The words of each phrase, in their order.
    pub(super) fn phrases(&self, phrases: &[String]) -> QueryResult<Vec<Vec<String>>> {
        let chunks: Vec<(&str, &str)> = phrases.iter().map(|phrase| ("", phrase.as_str())).collect();
        let in_order = |chunk: ChunkWords| {
            let mut places: Vec<(usize, String)> = Vec::with_capacity(chunk.length);
            for (word, at) in chunk.words {
                places.extend(at.into_iter().map(|(_, place)| (place, word.clone())));
            }
            places.sort_unstable();
            places.into_iter().map(|(_, word)| word).collect()
        };
        Ok(self.tokenize(&chunks)?.into_iter().map(in_order).collect())
    }

    /// The byte ranges in each text that match an expression of SQLite.
    pub(super) fn marks(&self, texts: &[&str], expression: &str) -> QueryResult<Vec<Vec<Range<usize>>>> {
        self.with_connection(|connection| {
            let mut insert =
                connection.prepare_cached("INSERT INTO passages (rowid, text) VALUES (?1, ?2)")?;
            for (index, text) in texts.iter().enumerate() {
                insert.execute(params![index as i64, text])?;
            }
            let mut read = connection.prepare_cached(
                "SELECT rowid, highlight(passages, 0, ?2, ?3) FROM passages WHERE passages MATCH ?1",
            )?;
            let mut rows = read.query(params![expression, MARK_START.to_string(), MARK_END.to_string()])?;
            let mut all = vec![Vec::new(); texts.len()];
            while let Some(row) = rows.next()? {
                let index = usize::try_from(row.get::<_, i64>(0)?).unwrap_or(usize::MAX);
                if let Some(found) = all.get_mut(index) {
                    *found = marks(row.get_ref(1)?.as_str()?);
                }
            }
            Ok(all)
        })
    }

    /// What `work` writes is forgotten.
    fn with_connection<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> QueryResult<T> {
        let run = || {
            let idle = self.idle.lock().pop();
            let mut connection = match idle {
                Some(connection) => connection,
                None => new_connection()?,
            };
            let done = {
                // Dropping it rolls back.
                let transaction = connection.transaction()?;
                work(&transaction)?
            };
            self.idle.lock().push(connection);
            Ok(done)
        };
        run().map_err(|error: rusqlite::Error| QueryError::unreadable("words", error))
    }
}

fn new_connection() -> rusqlite::Result<Connection> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(TABLES)?;
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_stems_without_case_and_accents_and_have_places() {
        let tokenizer = Tokenizer::default();
        for _ in 0..2 {
            let words = tokenizer.tokenize(&[("Boilers", "Zwölf CAFÉS, one boiler"), ("", "")]).unwrap();
            let place = |word: &str, places: &[(Field, usize)]| (word.to_owned(), places.to_vec());
            let expected = ChunkWords {
                words: vec![
                    place("boiler", &[(Field::Title, 0), (Field::Text, 3)]),
                    place("cafe", &[(Field::Text, 1)]),
                    place("on", &[(Field::Text, 2)]),
                    place("zwolf", &[(Field::Text, 0)]),
                ],
                title_length: 1,
                length: 5,
            };
            assert_eq!(words, [expected, ChunkWords::default()]);
        }
    }

    #[test]
    fn phrases_keep_their_order() {
        let phrases = ["to be to", "files txt", "\u{301}"].map(str::to_owned);
        let words = Tokenizer::default().phrases(&phrases).unwrap();
        assert_eq!(words, [vec!["to", "be", "to"], vec!["file", "txt"], vec![]]);
    }

    #[test]
    fn found_words_are_marked_in_each_text() {
        let texts = ["ä boilers, a boiler", "none"];
        let marks = Tokenizer::default().marks(&texts, "\"boiler\"").unwrap();
        assert_eq!(marks, [vec![3..10, 14..20], vec![]]);
    }
}

//! The words of a chunk in PostgreSQL's binary form of `tsvector`, and terms in the syntax of `tsquery`. No parser or dictionary of
//! the server takes part, so its language and locale do not matter. Pure.

use super::tokenizer::{ChunkWords, Field};

/// The limits of a `tsvector`: places, places of one word, bytes of a word, bytes of all.
const MAX_PLACE: usize = 16_383;
const MAX_PLACES: usize = 255;
const MAX_WORD_BYTES: usize = 2_000;
const MAX_BYTES: usize = 1_000_000;

/// The weights A and D in the two highest bits of a place.
const TITLE: u16 = 3 << 14;
const TEXT: u16 = 0;

/// The words for `COPY`. Words after the limits are not found: chunks are much smaller.
pub(super) fn word_vector(chunk: &ChunkWords) -> Vec<u8> {
    let (mut bytes, mut count) = (vec![0; 4], 0_u32);
    for (word, places) in &chunk.words {
        let places: Vec<u16> =
            places.iter().filter_map(|place| encode(*place, chunk.title_length)).take(MAX_PLACES).collect();
        let size = word.len() + 3 + 2 * places.len();
        if places.is_empty() || word.len() > MAX_WORD_BYTES || bytes.len() + size > MAX_BYTES {
            continue;
        }
        bytes.extend_from_slice(word.as_bytes());
        bytes.push(0);
        bytes.extend_from_slice(&(places.len() as u16).to_be_bytes());
        for place in places {
            bytes.extend_from_slice(&place.to_be_bytes());
        }
        count += 1;
    }
    bytes[..4].copy_from_slice(&count.to_be_bytes());
    bytes
}

/// The text is a place apart from the title, so that no phrase is in both.
fn encode((field, place): (Field, usize), title_length: usize) -> Option<u16> {
    let (weight, place) = match field {
        Field::Title => (TITLE, place + 1),
        Field::Text => (TEXT, title_length + 1 + place + 1),
    };
    u16::try_from(place).ok().filter(|place| usize::from(*place) <= MAX_PLACE).map(|place| weight | place)
}

/// A word or a phrase of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct QueryTerm {
    pub(super) anywhere: String,
    pub(super) in_title: String,
    pub(super) in_text: String,
    pub(super) is_phrase: bool,
}

impl QueryTerm {
    /// `None` without a word.
    pub(super) fn of(words: &[String]) -> Option<Self> {
        let joined = |label: &str| {
            let quoted = words.iter().map(|word| format!("{}{label}", quoted(word)));
            format!("({})", quoted.collect::<Vec<_>>().join(" <-> "))
        };
        (!words.is_empty()).then(|| QueryTerm {
            anywhere: joined(""),
            in_title: joined(":A"),
            in_text: joined(":D"),
            is_phrase: words.len() > 1,
        })
    }
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_the_binary_form_of_the_server() {
        let chunk = ChunkWords {
            words: vec![("ab".to_owned(), vec![(Field::Title, 0), (Field::Text, 1)])],
            title_length: 1,
            length: 3,
        };
        assert_eq!(
            word_vector(&chunk),
            [[0, 0, 0, 1].as_slice(), b"ab\0", &[0, 2], &[0xc0, 1], &[0, 4]].concat()
        );
    }

    #[test]
    fn words_after_the_limits_are_skipped() {
        let places = |count: usize| (0..count).map(|place| (Field::Text, place)).collect();
        let chunk = ChunkWords {
            words: vec![
                ("x".repeat(MAX_WORD_BYTES + 1), places(1)),
                ("late".to_owned(), vec![(Field::Text, MAX_PLACE)]),
                ("often".to_owned(), places(1_000)),
            ],
            title_length: 0,
            length: 0,
        };
        let bytes = word_vector(&chunk);
        assert_eq!((bytes.len(), &bytes[..12]), (4 + 6 + 2 + 2 * 255, b"\0\0\0\x01often\0\0\xff".as_slice()));
    }

    #[test]
    fn a_phrase_is_quoted() {
        let words = ["a'b", "c\\"].map(str::to_owned);
        assert_eq!(QueryTerm::of(&words).unwrap().in_title, "('a''b':A <-> 'c\\\\':A)");
        assert_eq!(QueryTerm::of(&[]), None);
    }
}

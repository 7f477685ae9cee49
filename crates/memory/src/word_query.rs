//! Turns any text into a word query. No text is an operator.

use std::collections::HashSet;

/// The part of a text that is used.
const MAX_BYTES: usize = 16 * 1024;

/// The number of different words.
const MAX_TERMS: usize = 32;

const MAX_WORD_BYTES: usize = 128;

/// Stop words, including greetings and the rests of `don't`, `it's`, `we'll`. Sorted.
const STOP_WORDS: [&str; 108] = [
    "a", "about", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "could",
    "d", "did", "do", "does", "doesn", "don", "for", "from", "get", "had", "has", "have", "he", "hello",
    "her", "hey", "hi", "his", "how", "i", "if", "in", "into", "is", "isn", "it", "its", "just", "ll", "m",
    "may", "me", "might", "more", "most", "must", "my", "no", "not", "of", "ok", "okay", "on", "or", "our",
    "out", "please", "re", "s", "shall", "she", "should", "so", "some", "such", "t", "tell", "than", "thank",
    "thanks", "that", "the", "their", "them", "then", "there", "these", "they", "this", "those", "to", "up",
    "us", "ve", "was", "we", "were", "what", "when", "where", "which", "while", "who", "whom", "whose",
    "why", "will", "with", "would", "yes", "you", "your", "yours",
];

/// The words of a question, each as a quoted phrase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WordQuery {
    terms: Vec<String>,
    has_topic: bool,
}

impl WordQuery {
    /// `None` if the text has no word.
    pub fn of(text: &str) -> Option<Self> {
        let mut seen = HashSet::new();
        let words: Vec<String> = beginning(text, MAX_BYTES)
            .split_whitespace()
            .filter_map(phrase)
            .filter(|word| seen.insert(word.clone()))
            .collect();
        let topical: Vec<&String> = words.iter().filter(|word| !is_empty(word)).collect();
        // A question of stop words only is searched as it is.
        let chosen = if topical.is_empty() { words.iter().collect() } else { topical };
        let terms: Vec<String> =
            chosen.into_iter().take(MAX_TERMS).map(|word| format!("\"{word}\"")).collect();
        let has_topic = words.iter().any(|word| !is_empty(word) && !is_short(word));
        (!terms.is_empty()).then_some(WordQuery { terms, has_topic })
    }

    /// Whether the question has a topic: neither `hi` nor `what is 2+2` has one.
    pub fn has_topic(&self) -> bool {
        self.has_topic
    }

    pub(crate) fn terms(&self) -> &[String] {
        &self.terms
    }

    /// How many words the question has. A term of a script without spaces is often several.
    pub(crate) fn word_count(&self) -> usize {
        self.terms.iter().map(|term| words_in(term)).sum()
    }

    /// Matches chunks with any of the words.
    pub(crate) fn any(&self) -> String {
        self.terms.join(" OR ")
    }
}

/// Suffixes after an apostrophe: `boiler's` is about a boiler.
const ENDINGS: [&str; 7] = ["d", "ll", "m", "re", "s", "t", "ve"];

/// A word as the index splits it: `file.txt` becomes the phrase `file txt`. The index splits other scripts itself.
fn phrase(word: &str) -> Option<String> {
    let word = beginning(word, MAX_WORD_BYTES).to_lowercase();
    if !word.contains(char::is_alphanumeric) {
        return None;
    }
    let word = match word.rsplit_once(['\'', '’']) {
        Some((stem, ending)) if stem.contains(char::is_alphanumeric) && is_ending(ending) => stem,
        _ => &word,
    };
    let is_part = |character: char| character.is_ascii_alphanumeric() || !character.is_ascii();
    let parts: Vec<&str> =
        word.split(|character| !is_part(character)).filter(|part| !part.is_empty()).collect();
    Some(parts.join(" "))
}

/// Also with punctuation: `boiler's?`.
fn is_ending(text: &str) -> bool {
    ENDINGS.contains(&text.trim_end_matches(|character: char| !character.is_alphanumeric()))
}

fn is_empty(word: &str) -> bool {
    word.split(' ').all(|part| STOP_WORDS.binary_search(&part).is_ok())
}

/// Whether it is single letters and digits, which occur in any text.
fn is_short(word: &str) -> bool {
    word.split(' ').all(|part| part.chars().nth(1).is_none() && part.is_ascii())
}

/// The number of words in a term. Chinese and Japanese have no spaces, and most of their words have one or two characters.
fn words_in(term: &str) -> usize {
    let runs = term.split(|character| !is_without_spaces(character));
    let without_spaces: usize = runs.map(|run| run.chars().count().div_ceil(2)).sum();
    let is_other = |character: char| character.is_alphanumeric() && !is_without_spaces(character);
    without_spaces + usize::from(term.contains(is_other))
}

/// Han characters and Hiragana. Katakana is not among them: words in it are longer, and other characters end them.
fn is_without_spaces(character: char) -> bool {
    matches!(character,
        '\u{3005}'..='\u{3007}'
        | '\u{3041}'..='\u{309f}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{323af}')
}

/// At most `most` bytes of whole characters.
fn beginning(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> Vec<String> {
        WordQuery::of(text).map(|query| query.terms).unwrap_or_default()
    }

    #[test]
    fn the_stop_words_are_sorted() {
        assert!(STOP_WORDS.is_sorted());
    }

    #[test]
    fn operators_are_words_and_punctuation_is_not() {
        assert_eq!(
            terms("NEAR(cat, 2) OR \"dog\" NOT title:x*"),
            ["\"near cat\"", "\"2\"", "\"dog\"", "\"title x\""]
        );
        assert_eq!(terms("^caf\u{e9} -- '; DROP \0TABLE"), ["\"caf\u{e9}\"", "\"drop\"", "\"table\""]);
        assert_eq!(terms("* ^ \" ' () \0 🦙"), [""; 0]);
    }

    #[test]
    fn stop_words_are_ignored_unless_there_are_no_others() {
        assert_eq!(
            terms("the boiler's, O'Neill’s or file.txt"),
            ["\"boiler\"", "\"o neill\"", "\"file txt\""]
        );
        assert_eq!(terms("Where's the boiler, and why doesn't it run?"), ["\"boiler\"", "\"run\""]);
        assert_eq!(terms("To be or not to be"), ["\"to\"", "\"be\"", "\"or\"", "\"not\""]);
    }

    #[test]
    fn small_talk_and_arithmetic_have_no_topic() {
        let has_topic = |text: &str| WordQuery::of(text).is_some_and(|query| query.has_topic());
        for text in
            ["hi", "Hello!", "thanks", "what is 2+2", "What is 2 + 2?", "who are you?", "To be or not to be"]
        {
            assert!(!has_topic(text), "{text}");
        }
        for text in ["boiler", "E17", "what is the gate code?", "水", "tell me of the boiler", "2027"] {
            assert!(has_topic(text), "{text}");
        }
    }

    #[test]
    fn words_are_counted_in_scripts_without_spaces_too() {
        for (text, words) in [
            ("水", 1),
            ("锅炉", 1),
            ("ボイラー", 1),
            ("東京タワー", 2),
            ("锅炉的压力是多少？", 4),
            ("ボイラーの圧力はどのくらいですか。", 7),
            ("보일러 압력", 2),
            ("the boiler's file.txt, caf\u{e9}", 3),
            ("什么是 TCP/IP？", 3),
        ] {
            assert_eq!(WordQuery::of(text).map(|query| query.word_count()), Some(words), "{text}");
        }
    }

    #[test]
    fn a_long_text_is_cut() {
        let long = (0..500_000).map(|number| format!("w{number} ")).collect::<String>();
        assert_eq!(terms(&long).len(), MAX_TERMS);
        assert_eq!(terms(&"é".repeat(1 << 20)), [format!("\"{}\"", "é".repeat(MAX_WORD_BYTES / 2))]);
    }
}

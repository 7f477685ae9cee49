//! Any text as a question for the index of words. All of the text is words, and none of it is an operator.

use std::collections::HashSet;

/// As much of a text is looked at.
const MOST_BYTES: usize = 16 * 1024;

/// As many different words are looked for.
const MOST_TERMS: usize = 32;

/// The longest word.
const MOST_WORD_BYTES: usize = 128;

/// Words that say nothing of what a question is about, greetings among them, and the rests of `don't`, `it's`, `we'll`. In order.
const EMPTY_WORDS: [&str; 108] = [
    "a", "about", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "could",
    "d", "did", "do", "does", "doesn", "don", "for", "from", "get", "had", "has", "have", "he", "hello",
    "her", "hey", "hi", "his", "how", "i", "if", "in", "into", "is", "isn", "it", "its", "just", "ll", "m",
    "may", "me", "might", "more", "most", "must", "my", "no", "not", "of", "ok", "okay", "on", "or", "our",
    "out", "please", "re", "s", "shall", "she", "should", "so", "some", "such", "t", "tell", "than", "thank",
    "thanks", "that", "the", "their", "them", "then", "there", "these", "they", "this", "those", "to", "up",
    "us", "ve", "was", "we", "were", "what", "when", "where", "which", "while", "who", "whom", "whose",
    "why", "will", "with", "would", "yes", "you", "your", "yours",
];

/// The words of a question, each as a quoted phrase that the index understands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WordQuery {
    terms: Vec<String>,
    is_telling: bool,
}

impl WordQuery {
    /// `None` when the text has no word at all.
    pub fn of(text: &str) -> Option<Self> {
        let mut seen = HashSet::new();
        let words: Vec<String> = beginning(text, MOST_BYTES)
            .split_whitespace()
            .filter_map(phrase)
            .filter(|word| seen.insert(word.clone()))
            .collect();
        let telling: Vec<&String> = words.iter().filter(|word| !is_empty(word)).collect();
        // Who asks for nothing but such words means them.
        let chosen = if telling.is_empty() { words.iter().collect() } else { telling };
        let terms: Vec<String> =
            chosen.into_iter().take(MOST_TERMS).map(|word| format!("\"{word}\"")).collect();
        let is_telling = words.iter().any(|word| !is_empty(word) && !is_short(word));
        (!terms.is_empty()).then_some(WordQuery { terms, is_telling })
    }

    /// Whether the question is about something that documents could say: neither `hi` nor `what is 2+2` is.
    pub fn is_telling(&self) -> bool {
        self.is_telling
    }

    pub(crate) fn terms(&self) -> &[String] {
        &self.terms
    }

    /// Every chunk with at least one of the words.
    pub(crate) fn any(&self) -> String {
        self.terms.join(" OR ")
    }
}

/// What an apostrophe leaves behind: `boiler's` is about a boiler.
const ENDINGS: [&str; 7] = ["d", "ll", "m", "re", "s", "t", "ve"];

/// A word as the index will cut it: `file.txt` becomes the phrase `file txt`. Outside ASCII the index knows best.
fn phrase(word: &str) -> Option<String> {
    let word = beginning(word, MOST_WORD_BYTES).to_lowercase();
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

/// Whatever stands behind it: `boiler's?` too.
fn is_ending(text: &str) -> bool {
    ENDINGS.contains(&text.trim_end_matches(|character: char| !character.is_alphanumeric()))
}

fn is_empty(word: &str) -> bool {
    word.split(' ').all(|part| EMPTY_WORDS.binary_search(&part).is_ok())
}

/// Whether it is single letters and digits, which stand in any text.
fn is_short(word: &str) -> bool {
    word.split(' ').all(|part| part.chars().nth(1).is_none() && part.is_ascii())
}

/// At most so many bytes, of whole characters.
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
    fn the_empty_words_are_in_order() {
        assert!(EMPTY_WORDS.is_sorted());
    }

    #[test]
    fn operators_are_words_and_punctuation_is_none() {
        assert_eq!(
            terms("NEAR(cat, 2) OR \"dog\" NOT title:x*"),
            ["\"near cat\"", "\"2\"", "\"dog\"", "\"title x\""]
        );
        assert_eq!(terms("^caf\u{e9} -- '; DROP \0TABLE"), ["\"caf\u{e9}\"", "\"drop\"", "\"table\""]);
        assert_eq!(terms("* ^ \" ' () \0 🦙"), [""; 0]);
    }

    #[test]
    fn words_that_say_nothing_are_left_out_unless_there_are_no_others() {
        assert_eq!(
            terms("the boiler's, O'Neill’s or file.txt"),
            ["\"boiler\"", "\"o neill\"", "\"file txt\""]
        );
        assert_eq!(terms("Where's the boiler, and why doesn't it run?"), ["\"boiler\"", "\"run\""]);
        assert_eq!(terms("To be or not to be"), ["\"to\"", "\"be\"", "\"or\"", "\"not\""]);
    }

    #[test]
    fn small_talk_and_sums_are_about_nothing() {
        let is_telling = |text: &str| WordQuery::of(text).is_some_and(|query| query.is_telling());
        for text in
            ["hi", "Hello!", "thanks", "what is 2+2", "What is 2 + 2?", "who are you?", "To be or not to be"]
        {
            assert!(!is_telling(text), "{text}");
        }
        for text in ["boiler", "E17", "what is the gate code?", "水", "tell me of the boiler", "2027"] {
            assert!(is_telling(text), "{text}");
        }
    }

    #[test]
    fn a_long_text_is_cut() {
        let long = (0..500_000).map(|number| format!("w{number} ")).collect::<String>();
        assert_eq!(terms(&long).len(), MOST_TERMS);
        assert_eq!(terms(&"é".repeat(1 << 20)), [format!("\"{}\"", "é".repeat(MOST_WORD_BYTES / 2))]);
    }
}

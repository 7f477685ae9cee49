//! The words of a search in chats. Pure: no text is an operator.

/// Words that are looked for; the others of a query are ignored.
const MAX_WORDS: usize = 8;

/// Characters of a word.
const MAX_WORD_CHARS: usize = 64;

/// The words of a text, in lower case.
fn words(text: &str) -> Vec<String> {
    text.split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .take(MAX_WORDS)
        .map(|word| word.chars().take(MAX_WORD_CHARS).collect::<String>().to_lowercase())
        .collect()
}

/// A query of SQLite's FTS5 for texts with all words, or words that begin so; `None` without words.
pub(crate) fn match_query(text: &str) -> Option<String> {
    let terms: Vec<String> = words(text).iter().map(|word| format!("\"{word}\"*")).collect();
    (!terms.is_empty()).then(|| terms.join(" AND "))
}

/// The same for PostgreSQL.
pub(crate) fn tsquery(text: &str) -> Option<String> {
    let terms: Vec<String> = words(text).iter().map(|word| format!("'{word}':*")).collect();
    (!terms.is_empty()).then(|| terms.join(" & "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_has_words_and_no_operators() {
        let text = "NOT file.txt: \"Größe\" OR 'x' | \\ * \0";
        let expected = "\"not\"* AND \"file\"* AND \"txt\"* AND \"größe\"* AND \"or\"* AND \"x\"*";
        assert_eq!(match_query(text).as_deref(), Some(expected));
        let expected = "'not':* & 'file':* & 'txt':* & 'größe':* & 'or':* & 'x':*";
        assert_eq!(tsquery(text).as_deref(), Some(expected));
        assert_eq!((match_query("?! \0"), tsquery("")), (None, None));
        assert_eq!(words(&"w ".repeat(50)).len(), MAX_WORDS);
    }
}

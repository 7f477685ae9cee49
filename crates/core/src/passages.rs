//! The format of passages of documents before a question in the same message, so that code can separate the two.

use crate::message::Message;

/// How the passages begin.
pub const PASSAGES_BEGIN: &str = "<documents>\nPassages from the user's own documents follow";

/// How they end. The code that adds passages ensures that none of them contains this text.
pub const PASSAGES_END: &str = "</documents>\n\n";

/// Whether a conversation has passages.
pub fn has_passages(messages: &[Message]) -> bool {
    messages.iter().any(|message| message.content.text().contains(PASSAGES_BEGIN))
}

/// A message's text without the passages before it.
pub fn without_passages(text: &str) -> &str {
    match text.strip_prefix(PASSAGES_BEGIN) {
        Some(passages) => passages.split_once(PASSAGES_END).map_or("", |(_, question)| question),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_is_what_stands_behind_the_passages() {
        let told = format!("{PASSAGES_BEGIN}.\n\n[1] a.md\nBleed it.\n{PASSAGES_END}How?");
        assert_eq!(without_passages(&told), "How?");
        assert_eq!(without_passages("How?"), "How?");
        assert_eq!(without_passages(PASSAGES_BEGIN), "", "cut off, it is no question");
    }
}

//! How much is saved. Pure: shared by all databases.

use std::borrow::Cow;

/// Conversations that are saved.
pub(crate) const MAX_CHATS: i64 = 500;

/// Bytes of all conversations.
pub(crate) const MAX_BYTES: i64 = 64 << 20;

/// Turns of one conversation.
pub(crate) const MAX_TURNS: i64 = 2_000;

/// Bytes of one conversation.
pub(crate) const MAX_CHAT_BYTES: i64 = 16 << 20;

/// Bytes of one text.
pub(crate) const MAX_TEXT_BYTES: usize = 1 << 20;

/// Marks the end of a truncated text.
pub(crate) const CUT: &str = "\n[the rest was too long to keep]";

/// Characters of a title.
const MAX_TITLE_CHARS: usize = 200;

/// The text, or as much of it as is saved.
pub(crate) fn bounded(text: &str) -> Cow<'_, str> {
    if text.len() <= MAX_TEXT_BYTES {
        return Cow::Borrowed(text);
    }
    let end = text.floor_char_boundary(MAX_TEXT_BYTES);
    Cow::Owned(format!("{}{CUT}", &text[..end]))
}

/// The title of a conversation that begins with this question.
pub(crate) fn title(question: &str) -> String {
    let words = question.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().take(MAX_TITLE_CHARS).collect()
}

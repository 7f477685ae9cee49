//! Texts of strangers as one line. Pure.

/// The most letters of a subject, a name or the name of a file.
const MAX_CHARS: usize = 300;

/// The most letters of the id of a message.
const MAX_ID_CHARS: usize = 500;

/// Whether a text without brackets is the id of a message that may stand in a header.
pub(crate) fn is_message_id(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'<' | b'>');
    !text.is_empty() && text.len() <= MAX_ID_CHARS && text.bytes().all(is_plain)
}

/// A text as one line of bounded length, without control characters.
pub(crate) fn one_line(text: &str) -> String {
    let printable = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    printable.take(MAX_CHARS).collect::<String>().trim().to_owned()
}

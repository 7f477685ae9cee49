//! Texts of strangers as one line. Pure.

/// The most letters of a subject, a name or the name of a file.
const MAX_CHARS: usize = 300;

/// A text as one line of bounded length, without control characters.
pub(crate) fn one_line(text: &str) -> String {
    let printable = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    printable.take(MAX_CHARS).collect::<String>().trim().to_owned()
}

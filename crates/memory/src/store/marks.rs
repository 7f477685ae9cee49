//! The marks around the found words of a text.

use std::borrow::Cow;
use std::ops::Range;

/// No stored text has these characters.
pub(super) const MARK_START: char = '\u{2}';
pub(super) const MARK_END: char = '\u{3}';

/// The text without the characters that a store cannot keep: the two marks, and U+0000, which PostgreSQL has in no text. Bytes keep
/// their places.
pub(super) fn storable(text: &str) -> Cow<'_, str> {
    const REPLACED: [char; 3] = [MARK_START, MARK_END, '\0'];
    if text.contains(REPLACED) { Cow::Owned(text.replace(REPLACED, " ")) } else { Cow::Borrowed(text) }
}

/// The ranges between the marks, in the text without marks.
pub(super) fn marks(marked: &str) -> Vec<Range<usize>> {
    let mut marks = Vec::new();
    let (mut start, mut removed) = (0, 0);
    for (at, character) in marked.char_indices() {
        match character {
            MARK_START => {
                start = at - removed;
                removed += MARK_START.len_utf8();
            }
            MARK_END => {
                marks.push(start..at - removed);
                removed += MARK_END.len_utf8();
            }
            _ => {}
        }
    }
    marks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_ranges_of_the_text() {
        assert_eq!(marks("ä \u{2}boiler\u{3}, \u{2}valve\u{3}."), [3..9, 11..16]);
        assert_eq!(marks("nothing"), [0..0; 0]);
    }
}

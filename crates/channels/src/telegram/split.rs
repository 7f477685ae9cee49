//! Splits a text into messages. Pure.

/// The longest message, in UTF-16 units, as Telegram counts.
pub(super) const MAX_UNITS: usize = 4_096;

/// The pieces of a text, none longer than `most` UTF-16 units and none blank. Split between paragraphs if possible, else between
/// lines, else between words.
pub(super) fn split(text: &str, most: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let end = end_of_piece(rest, most);
        let (piece, after) = rest.split_at(end);
        if !piece.trim().is_empty() {
            pieces.push(piece.trim_end());
        }
        rest = after.trim_start();
    }
    pieces
}

/// Where the first piece ends.
fn end_of_piece(text: &str, most: usize) -> usize {
    let fits = fitting(text, most);
    if fits == text.len() {
        return fits;
    }
    let head = &text[..fits];
    // A separator at the very beginning would leave a piece of a few letters.
    let late = |at: &usize| *at > fits / 4;
    let after = |separator: &str| head.rfind(separator).map(|at| at + separator.len()).filter(late);
    after("\n\n").or_else(|| after("\n")).or_else(|| after(". ")).or_else(|| after(" ")).unwrap_or(fits)
}

/// The bytes of `text` that have at most `most` UTF-16 units, at least one letter.
fn fitting(text: &str, most: usize) -> usize {
    let mut units = 0;
    for (at, letter) in text.char_indices() {
        units += letter.len_utf16();
        if units > most && at > 0 {
            return at;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(text: &str) -> usize {
        text.encode_utf16().count()
    }

    #[test]
    fn a_short_text_is_one_message_and_a_blank_one_none() {
        assert_eq!(split("hello\n", MAX_UNITS), ["hello"]);
        assert_eq!(split(" \n ", MAX_UNITS), [] as [&str; 0]);
        let exact = "x".repeat(MAX_UNITS);
        assert_eq!(split(&exact, MAX_UNITS), [exact.as_str()]);
    }

    #[test]
    fn paragraphs_stay_whole_then_lines_then_words() {
        assert_eq!(split("one two\n\nthree four", 12), ["one two", "three four"]);
        assert_eq!(split("one two\nthree four", 12), ["one two", "three four"]);
        assert_eq!(split("one two three", 9), ["one two", "three"]);
        assert_eq!(split("abcdefghij", 4), ["abcd", "efgh", "ij"]);
    }

    #[test]
    fn no_piece_is_too_long_and_no_letter_is_lost() {
        // A smiling face has two units.
        let text = "a 😀😀😀 paragraph\n\nwith 😀 faces, and-a-very-long-word-without-a-break ".repeat(50);
        for most in [2, 3, 7, 50, 4_096] {
            let pieces = split(&text, most);
            assert!(pieces.iter().all(|piece| units(piece) <= most), "{most}");
            let letters =
                |text: &str| text.chars().filter(|letter| !letter.is_whitespace()).collect::<String>();
            assert_eq!(letters(&pieces.concat()), letters(&text), "{most}");
        }
    }
}

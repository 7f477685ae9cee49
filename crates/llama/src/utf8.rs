//! Bytes of tokens into text, never cutting a character. Knows nothing of models.

/// Keeps the bytes of an unfinished character until the rest arrives.
#[derive(Debug, Default)]
pub(crate) struct Utf8Buffer {
    pending: Vec<u8>,
}

impl Utf8Buffer {
    /// Takes the bytes of the next token and gives back what is whole. Bytes that can never become a character turn
    /// into U+FFFD; an unfinished character at the very end of an answer is left out.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        self.pending.extend_from_slice(bytes);
        let mut text = String::with_capacity(self.pending.len());
        let mut rest = self.pending.as_slice();
        loop {
            match std::str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    rest = &[];
                    break;
                }
                Err(error) => {
                    let (valid, after) = rest.split_at(error.valid_up_to());
                    text.push_str(&String::from_utf8_lossy(valid));
                    match error.error_len() {
                        Some(bad) => {
                            text.push(char::REPLACEMENT_CHARACTER);
                            rest = &after[bad..];
                        }
                        None => {
                            rest = after;
                            break;
                        }
                    }
                }
            }
        }
        let kept = rest.to_vec();
        self.pending = kept;
        text
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn through(pieces: &[&[u8]]) -> String {
        let mut buffer = Utf8Buffer::default();
        pieces.iter().map(|piece| buffer.push(piece)).collect()
    }

    #[test]
    fn a_character_that_comes_in_pieces_appears_whole() {
        let mut buffer = Utf8Buffer::default();
        let bytes = "😀".as_bytes();
        assert_eq!(buffer.push(&bytes[..2]), "");
        assert_eq!(buffer.push(&bytes[2..3]), "");
        assert_eq!(buffer.push(&bytes[3..]), "😀");
    }

    #[test]
    fn bytes_that_are_no_text_are_marked_and_do_not_hold_up_the_rest() {
        assert_eq!(through(&[&[b'a', 0xFF, b'b']]), "a\u{FFFD}b");
        assert_eq!(through(&[&[0xF0, 0x9F], b"x"]), "\u{FFFD}x");
    }

    proptest! {
        #[test]
        fn text_comes_out_as_it_went_in_however_it_is_cut(text in "\\PC*", cut in 1usize..5) {
            let pieces: Vec<&[u8]> = text.as_bytes().chunks(cut).collect();
            prop_assert_eq!(through(&pieces), text.clone());
        }
    }
}

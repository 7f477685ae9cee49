//! Decodes the bytes of tokens without splitting characters.

/// Holds the bytes of an incomplete character.
#[derive(Debug, Default)]
pub(crate) struct Utf8Buffer {
    pending: Vec<u8>,
}

impl Utf8Buffer {
    /// Adds bytes, and returns complete characters. Invalid bytes become U+FFFD; an incomplete character at the end of an answer
    /// is dropped.
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
    fn a_split_character_is_complete() {
        let mut buffer = Utf8Buffer::default();
        let bytes = "😀".as_bytes();
        assert_eq!(buffer.push(&bytes[..2]), "");
        assert_eq!(buffer.push(&bytes[2..3]), "");
        assert_eq!(buffer.push(&bytes[3..]), "😀");
    }

    #[test]
    fn invalid_bytes_are_replaced_and_do_not_block_the_rest() {
        assert_eq!(through(&[&[b'a', 0xFF, b'b']]), "a\u{FFFD}b");
        assert_eq!(through(&[&[0xF0, 0x9F], b"x"]), "\u{FFFD}x");
    }

    proptest! {
        #[test]
        fn text_is_unchanged_however_it_is_split(text in "\\PC*", cut in 1usize..5) {
            let pieces: Vec<&[u8]> = text.as_bytes().chunks(cut).collect();
            prop_assert_eq!(through(&pieces), text.clone());
        }
    }
}

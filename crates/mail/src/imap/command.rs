//! Commands to an IMAP server. Pure: texts become quoted strings or literals, so that no text can add a command.

/// A command as it is sent: lines, each of which but the last ends with the length of the literal that comes first in the next piece. The
/// server answers after each such line. It may hold a password, so it cannot be printed.
pub(crate) struct Command {
    pieces: Vec<Vec<u8>>,
    piece: Vec<u8>,
}

impl Command {
    pub fn new(words: &str) -> Self {
        Command { pieces: Vec::new(), piece: words.as_bytes().to_vec() }
    }

    /// Adds words of the protocol.
    pub fn words(mut self, words: &str) -> Self {
        self.piece.push(b' ');
        self.piece.extend_from_slice(words.as_bytes());
        self
    }

    /// Adds a text of any content.
    pub fn text(mut self, text: &str) -> Self {
        self.piece.push(b' ');
        if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
            self.piece.push(b'"');
            for byte in text.bytes() {
                if matches!(byte, b'"' | b'\\') {
                    self.piece.push(b'\\');
                }
                self.piece.push(byte);
            }
            self.piece.push(b'"');
            return self;
        }
        self.piece.extend_from_slice(format!("{{{}}}", text.len()).as_bytes());
        self.pieces.push(std::mem::take(&mut self.piece));
        self.piece.extend_from_slice(text.as_bytes());
        self
    }

    /// The pieces with their line ends, the first one with the tag.
    pub fn pieces(mut self, tag: &str) -> Vec<Vec<u8>> {
        self.pieces.push(self.piece);
        let mut pieces = self.pieces;
        if let Some(first) = pieces.first_mut() {
            let mut tagged = format!("{tag} ").into_bytes();
            tagged.append(first);
            *first = tagged;
        }
        for piece in &mut pieces {
            piece.extend_from_slice(b"\r\n");
        }
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(command: Command) -> Vec<String> {
        command.pieces("A1").into_iter().map(|piece| String::from_utf8(piece).expect("text")).collect()
    }

    #[test]
    fn a_text_is_quoted_and_its_quotes_escaped() {
        let command = Command::new("LOGIN").text("ann").text(r#"pa"ss\word"#);
        assert_eq!(sent(command), ["A1 LOGIN \"ann\" \"pa\\\"ss\\\\word\"\r\n"]);
    }

    #[test]
    fn a_line_end_in_a_text_starts_no_command() {
        let command = Command::new("EXAMINE").text("INBOX\r\nA2 DELETE INBOX");
        assert_eq!(sent(command), ["A1 EXAMINE {22}\r\n", "INBOX\r\nA2 DELETE INBOX\r\n"]);
    }

    #[test]
    fn letters_beyond_ascii_are_literals() {
        let command = Command::new("UID SEARCH").words("SUBJECT").text("Grüße").words("UNSEEN");
        assert_eq!(sent(command), ["A1 UID SEARCH SUBJECT {7}\r\n", "Grüße UNSEEN\r\n"]);
    }
}

//! Converts a WordPiece vocabulary to the form of llama.cpp.

use super::error::ConvertError;

const FILE: &str = "vocab.txt";

/// llama.cpp puts this before every word, so pieces that begin a word need it.
const WORD_START: char = '\u{2581}';

/// Marks a piece that continues a word in the published form.
const CONTINUES: &str = "##";

pub(super) struct Vocabulary {
    /// By id.
    pub tokens: Vec<String>,
    pub special: Special,
}

/// The ids of control tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Special {
    pub padding: u32,
    pub unknown: u32,
    /// Before every text.
    pub opening: u32,
    /// After every text.
    pub closing: u32,
    pub mask: u32,
}

impl Vocabulary {
    /// One token per line, `size` in total.
    pub fn read(text: &[u8], size: u32) -> Result<Self, ConvertError> {
        let bad = |reason: String| ConvertError::bad(FILE, reason);
        let text = std::str::from_utf8(text).map_err(|error| bad(format!("it is not text ({error})")))?;
        let lines: Vec<&str> = text.lines().collect();
        if lines.len() as u64 != u64::from(size) {
            return Err(bad(format!("it has {} tokens, but config.json says {size}", lines.len())));
        }
        let number = |token: &str| {
            let found = (0..).zip(&lines).find(|(_, line)| **line == token);
            found.map(|(number, _)| number).ok_or_else(|| bad(format!("{token} is missing")))
        };
        let special = Special {
            padding: number("[PAD]")?,
            unknown: number("[UNK]")?,
            opening: number("[CLS]")?,
            closing: number("[SEP]")?,
            mask: number("[MASK]")?,
        };
        Ok(Vocabulary { tokens: lines.into_iter().map(as_looked_up).collect(), special })
    }

    /// The token types of the format.
    pub fn kinds(&self) -> Vec<i32> {
        const NORMAL: i32 = 1;
        const UNKNOWN: i32 = 2;
        const CONTROL: i32 = 3;
        let Special { padding, unknown, opening, closing, mask } = self.special;
        let kind = |number: u32| match number {
            number if number == unknown => UNKNOWN,
            number if [padding, opening, closing, mask].contains(&number) => CONTROL,
            _ => NORMAL,
        };
        (0..).zip(&self.tokens).map(|(number, _)| kind(number)).collect()
    }
}

fn as_looked_up(token: &str) -> String {
    let is_named = token.starts_with('[') && token.ends_with(']');
    match token.strip_prefix(CONTINUES) {
        Some(rest) if !rest.is_empty() => rest.to_owned(),
        // Control tokens such as `[CLS]` never begin a word.
        _ if is_named => token.to_owned(),
        _ => format!("{WORD_START}{token}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhouse\n##s\n##\n[\né\n";

    #[test]
    fn pieces_are_marked_as_they_are_looked_up() {
        let vocabulary = Vocabulary::read(TEXT.as_bytes(), 10).unwrap();
        assert_eq!(vocabulary.tokens[5..], ["▁house", "s", "▁##", "▁[", "▁é"]);
        assert_eq!(vocabulary.tokens[0], "[PAD]");
        assert_eq!(vocabulary.kinds(), [3, 2, 3, 3, 3, 1, 1, 1, 1, 1]);
        let special = Special { padding: 0, unknown: 1, opening: 2, closing: 3, mask: 4 };
        assert_eq!(vocabulary.special, special);
    }

    #[test]
    fn a_vocabulary_that_does_not_fit_the_model_is_refused() {
        let refused = |text: &[u8], size| Vocabulary::read(text, size).err().unwrap().to_string();
        assert!(refused(TEXT.as_bytes(), 11).contains("it has 10 tokens, but config.json says 11"));
        assert!(refused(b"[PAD]\n[UNK]\n", 2).contains("[CLS] is missing"));
        assert!(refused(b"\xff\n", 1).contains("it is not text"));
    }
}

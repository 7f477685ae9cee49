//! Running text as words, which are kept together on a line.

use anstyle::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What stays on one line: runs of one style each.
#[derive(Debug, Default)]
pub struct Word {
    pub runs: Vec<(Style, String)>,
    /// Whether a space belongs before it.
    pub is_spaced: bool,
}

impl Word {
    pub fn width(&self) -> usize {
        self.runs.iter().map(|(_, text)| text.width()).sum()
    }

    fn push(&mut self, character: char, style: Style) {
        match self.runs.last_mut() {
            Some((last, text)) if *last == style => text.push(character),
            _ => self.runs.push((style, character.to_string())),
        }
    }
}

#[derive(Debug)]
pub enum TextPiece {
    Word(Word),
    /// The end of a line.
    Break,
}

/// Words as they are collected.
#[derive(Debug, Default)]
pub struct Words {
    pieces: Vec<TextPiece>,
    /// The last character, if the last word may go on.
    last: Option<char>,
    is_spaced: bool,
}

impl Words {
    pub fn text(&mut self, text: &str, style: Style) {
        for character in text.chars() {
            if is_gap(character) {
                self.last = None;
                self.is_spaced = true;
                continue;
            }
            match (self.pieces.last_mut(), self.last) {
                (Some(TextPiece::Word(word)), Some(last)) if !may_break(last, character) => {
                    word.push(character, style);
                }
                _ => {
                    let mut word = Word { is_spaced: std::mem::take(&mut self.is_spaced), ..Word::default() };
                    word.push(character, style);
                    self.pieces.push(TextPiece::Word(word));
                }
            }
            self.last = Some(character);
        }
    }

    pub fn break_line(&mut self) {
        self.pieces.push(TextPiece::Break);
        self.last = None;
        self.is_spaced = false;
    }

    pub fn take(&mut self) -> Vec<TextPiece> {
        std::mem::take(self).pieces
    }
}

/// Whether the character stands between words.
pub fn is_gap(character: char) -> bool {
    character.is_whitespace() && character != '\u{a0}'
}

/// Whether a line may end between two characters that no space separates: in scripts that are written without.
pub fn may_break(before: char, after: char) -> bool {
    before.width() == Some(2) && after.width() == Some(2) && after.is_alphanumeric()
}

/// Whether a piece of text can be the end of a word.
pub fn may_end_a_word(piece: &str) -> bool {
    piece.chars().any(|character| is_gap(character) || character.width() == Some(2))
}

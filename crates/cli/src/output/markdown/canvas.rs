//! Lines: margins, marks before items, and words that go to the next line where this one is full.

use std::fmt::Write;

use anstyle::Style;
use unicode_width::UnicodeWidthStr;

use super::MarkdownLook;
use super::words::{TextPiece, Word};

/// The lines so far. The last one is open, so that text can only ever be added.
pub struct Canvas {
    look: MarkdownLook,
    out: String,
    /// What stands before every line of the items and quotations that are open.
    margins: Vec<(String, Style)>,
    /// Columns of the current line that are taken; `None` while its margin is not there yet.
    column: Option<usize>,
    /// Whether a word stands on the current line.
    has_words: bool,
    /// Whether a mark stands before the next word.
    is_marked: bool,
}

impl Canvas {
    pub fn new(look: MarkdownLook) -> Self {
        Canvas {
            look,
            out: String::new(),
            margins: Vec::new(),
            column: None,
            has_words: false,
            is_marked: false,
        }
    }

    pub fn into_text(self) -> String {
        self.out
    }

    pub fn push_margin(&mut self, margin: &str, style: Style) {
        self.margins.push((margin.to_owned(), style));
    }

    pub fn pop_margin(&mut self) {
        self.margins.pop();
    }

    /// Whether no item and no quotation is open.
    pub fn is_outermost(&self) -> bool {
        self.margins.is_empty()
    }

    /// Columns that are left for text.
    pub fn room(&self) -> usize {
        let taken: usize = self.margins.iter().map(|(margin, _)| margin.width()).sum();
        self.look.width.saturating_sub(taken).max(super::look::NARROWEST)
    }

    pub fn newline(&mut self) {
        self.out.push('\n');
        self.column = None;
        self.has_words = false;
        self.is_marked = false;
    }

    /// Puts a mark before what follows, such as the number of an item.
    pub fn mark(&mut self, mark: &str, style: Style) {
        self.begin_line();
        self.space_after_mark();
        self.write(mark, style);
        self.is_marked = true;
    }

    pub fn words(&mut self, pieces: Vec<TextPiece>) {
        for piece in pieces {
            match piece {
                TextPiece::Word(word) => self.word(&word),
                TextPiece::Break => self.newline(),
            }
        }
    }

    fn word(&mut self, word: &Word) {
        self.begin_line();
        let is_spaced = word.is_spaced && self.has_words;
        let end = self.column.unwrap_or(0) + usize::from(is_spaced || self.is_marked) + word.width();
        if self.has_words && end > self.look.width {
            self.newline();
            self.begin_line();
        } else if is_spaced {
            self.write(" ", Style::new());
        }
        self.space_after_mark();
        for (style, text) in &word.runs {
            self.write(text, *style);
        }
        self.has_words = true;
    }

    /// A line as it is, however long.
    pub fn verbatim(&mut self, line: &str, style: Style) {
        if line.is_empty() {
            return;
        }
        self.begin_line();
        self.space_after_mark();
        self.write(line, style);
        self.has_words = true;
    }

    fn begin_line(&mut self) {
        if self.column.is_some() {
            return;
        }
        self.column = Some(0);
        for (margin, style) in self.margins.clone() {
            self.write(&margin, style);
        }
    }

    fn space_after_mark(&mut self) {
        if std::mem::take(&mut self.is_marked) {
            self.write(" ", Style::new());
        }
    }

    fn write(&mut self, text: &str, style: Style) {
        // Writing to a string cannot fail.
        let _ = write!(self.out, "{style}{text}{style:#}");
        self.column = Some(self.column.unwrap_or(0) + text.width());
    }
}

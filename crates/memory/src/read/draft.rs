//! Builds a document with a size limit.

use super::{BlockKind, Document, ReadError, ReadLimits, TextBlock};
use crate::types::PositionUnit;

/// Records are joined into blocks of about this size, because a block for each would be too much overhead.
const ROWS_BYTES: usize = 2 << 10;

/// The longest title in characters.
const MAX_TITLE: usize = 300;

pub struct Draft {
    document: Document,
    bytes: usize,
    limit: usize,
    /// The records of the current block.
    rows: u32,
}

impl Draft {
    pub fn new(place: PositionUnit, limits: &ReadLimits) -> Self {
        let document = Document { place, ..Document::default() };
        Draft { document, bytes: 0, limit: limits.text_bytes, rows: 0 }
    }

    /// Sets the title, if it is the first.
    pub fn title(&mut self, title: &str) {
        let words = title.split_whitespace().collect::<Vec<_>>().join(" ");
        if self.document.title.is_none() && !words.is_empty() {
            self.document.title = Some(words.chars().take(MAX_TITLE).collect());
        }
    }

    /// Adds a block on these lines. Blank blocks are dropped.
    pub fn push(
        &mut self,
        kind: BlockKind,
        text: &str,
        (line, end_line): (u32, u32),
    ) -> Result<(), ReadError> {
        if text.trim().is_empty() {
            return Ok(());
        }
        self.grow(text.len())?;
        self.document.blocks.push(TextBlock { kind, text: text.to_owned(), line, end_line });
        Ok(())
    }

    /// Adds a record of one line, to the current block if its lines are consecutive.
    pub fn row(&mut self, text: &str, line: u32) -> Result<(), ReadError> {
        self.grow(text.len() + 1)?;
        if let Some(block) = self.document.blocks.last_mut()
            && block.kind == BlockKind::Row
            && block.text.len() + text.len() <= ROWS_BYTES
        {
            let is_next = block.end_line.checked_add(1) == Some(line) && self.rows == line - block.line;
            if is_next || (line == block.line && line == block.end_line) {
                block.text.push('\n');
                block.text.push_str(text);
                block.end_line = line;
                self.rows += 1;
                return Ok(());
            }
        }
        let block = TextBlock { kind: BlockKind::Row, text: text.to_owned(), line, end_line: line };
        self.document.blocks.push(block);
        self.rows = 1;
        Ok(())
    }

    fn grow(&mut self, bytes: usize) -> Result<(), ReadError> {
        self.bytes += bytes;
        if self.bytes > self.limit {
            return Err(ReadError::TooMuchText { limit: self.limit });
        }
        Ok(())
    }

    pub fn finish(self) -> Document {
        self.document
    }
}

/// The line of an offset in a text. Offsets must be in order, so that the text is scanned once.
pub struct Lines<'a> {
    text: &'a [u8],
    at: usize,
    line: u32,
}

impl<'a> Lines<'a> {
    pub fn new(text: &'a [u8]) -> Self {
        Lines { text, at: 0, line: 1 }
    }

    pub fn line_of(&mut self, place: usize) -> u32 {
        let place = place.clamp(self.at, self.text.len());
        let feeds = self.text[self.at..place].iter().filter(|byte| **byte == b'\n').count();
        self.line = self.line.saturating_add(u32::try_from(feeds).unwrap_or(u32::MAX));
        self.at = place;
        self.line
    }
}

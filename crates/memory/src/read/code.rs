//! Source code: one block for each top-level item, detected by blank lines and indentation.

use super::draft::Draft;
use super::{BlockKind, Document, ReadError, ReadLimits};
use crate::types::PositionUnit;

pub fn read(text: &str, limits: &ReadLimits) -> Result<Document, ReadError> {
    let mut draft = Draft::new(PositionUnit::Line, limits);
    let (mut from, mut from_line) = (0, 1);
    let (mut at, mut line) = (0, 1_u32);
    let mut last_line = 1;
    let mut is_after_blank = false;
    // Of the current item. Looking at its text again for every line would cost the square of its length.
    let mut has_words = false;
    for row in text.split_inclusive('\n') {
        let is_blank = row.trim().is_empty();
        if is_after_blank && begins_item(row) {
            draft.push(BlockKind::Code, text[from..at].trim_end(), (from_line, last_line))?;
            (from, from_line) = (at, line);
            has_words = false;
        }
        if !is_blank {
            last_line = line;
            if !has_words {
                (from, from_line) = (at, line);
                has_words = true;
            }
        }
        is_after_blank = is_blank;
        at += row.len();
        line = line.saturating_add(1);
    }
    draft.push(BlockKind::Code, text[from..].trim_end(), (from_line, last_line))?;
    Ok(draft.finish())
}

/// A line without indentation begins an item, unless it closes one.
fn begins_item(row: &str) -> bool {
    row.chars().next().is_some_and(|first| !first.is_whitespace() && !matches!(first, '}' | ')' | ']'))
}

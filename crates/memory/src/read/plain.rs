//! Plain text: paragraphs with empty lines between them.

use super::draft::Draft;
use super::{BlockKind, Document, ReadError, ReadLimits};
use crate::types::PositionUnit;

pub fn read(text: &str, limits: &ReadLimits) -> Result<Document, ReadError> {
    let mut draft = Draft::new(PositionUnit::Line, limits);
    paragraphs(text, 1, |paragraph, lines| draft.push(BlockKind::Paragraph, paragraph, lines))?;
    Ok(draft.finish())
}

/// Calls `each` with every paragraph and its lines. The text begins on line `first`.
pub fn paragraphs(
    text: &str,
    first: u32,
    mut each: impl FnMut(&str, (u32, u32)) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    let mut begun: Option<(usize, u32)> = None;
    let (mut at, mut line) = (0, first);
    for row in text.split_inclusive('\n') {
        match (row.trim().is_empty(), begun) {
            (true, Some((from, from_line))) => {
                each(text[from..at].trim_end(), (from_line, line - 1))?;
                begun = None;
            }
            (false, None) => begun = Some((at, line)),
            _ => {}
        }
        at += row.len();
        line = line.saturating_add(1);
    }
    match begun {
        Some((from, from_line)) => each(text[from..].trim_end(), (from_line, line - 1)),
        None => Ok(()),
    }
}

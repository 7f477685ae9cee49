//! HTML: the visible text.

use hob_text::html_to_text::{LineKind, ReadOptions, readable_lines};

use super::draft::{Draft, Lines};
use super::{BlockKind, Document, ReadError, ReadLimits};
use crate::types::PositionUnit;

pub fn read(html: &str, limits: &ReadLimits) -> Result<Document, ReadError> {
    let mut draft = Draft::new(PositionUnit::Line, limits);
    let mut lines = Lines::new(html.as_bytes());
    append(html, limits, &mut draft, |place| lines.line_of(place))?;
    Ok(draft.finish())
}

/// Adds the text of a page. `line_of` returns the line of an offset.
pub fn append(
    html: &str,
    limits: &ReadLimits,
    draft: &mut Draft,
    mut line_of: impl FnMut(usize) -> u32,
) -> Result<(), ReadError> {
    let (page, lines) = readable_lines(html, ReadOptions { base: None, max_bytes: limits.text_bytes });
    if let Some(title) = &page.title {
        draft.title(title);
    }
    let mut lines = lines.iter().peekable();
    while let Some(first) = lines.next() {
        let mut end_line = line_of(first.source);
        let line = end_line;
        // Items of a list and rows of a table stay together.
        while let Some(next) = lines.next_if(|next| !next.is_apart && next.kind == first.kind) {
            end_line = line_of(next.source);
        }
        let end = lines.peek().map_or(page.text.len(), |next| next.start);
        let text = page.text[first.start..end.max(first.start)].trim_end();
        match first.kind {
            LineKind::Heading(level) => {
                draft.push(
                    BlockKind::Heading(level),
                    text.trim_start_matches('#').trim(),
                    (line, end_line),
                )?;
            }
            LineKind::Text => draft.push(BlockKind::Paragraph, text, (line, end_line))?,
            LineKind::Preformatted => {
                let feeds = u32::try_from(text.matches('\n').count()).unwrap_or(u32::MAX);
                draft.push(BlockKind::Code, text, (line, end_line.max(line.saturating_add(feeds))))?;
            }
        }
    }
    Ok(())
}

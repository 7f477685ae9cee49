//! Text in scanned pages and pictures.

use std::time::{Duration, Instant};

use super::draft::Draft;
use super::{BlockKind, Document, ReadError, ReadLimits, child_process, plain};
use crate::types::PositionUnit;

/// Scanned pages of one document that are read.
const MAX_PAGES: usize = 200;

/// The time limit of all pages of a document.
const DOCUMENT_TIME: Duration = Duration::from_secs(600);

/// Reads the scanned pages of a PDF, if there is a program for it. Pages that cannot be read stay in the list of the document.
pub fn read_scanned(document: Document, bytes: &[u8], limits: &ReadLimits) -> Result<Document, ReadError> {
    let Some(program) = limits.ocr.as_ref().filter(|_| !document.scanned.is_empty()) else {
        return Ok(document);
    };
    if !program.is_installed() {
        return Ok(document);
    }
    let until = Instant::now() + DOCUMENT_TIME;
    let Document { title, blocks, place, scanned } = document;
    let mut draft = Draft::new(place, limits);
    let mut unread = Vec::new();
    for (index, page) in scanned.into_iter().enumerate() {
        if index >= MAX_PAGES || Instant::now() >= until {
            unread.push(page);
            continue;
        }
        let read = child_process::read_page(bytes, page, limits).and_then(|picture| program.text(&picture));
        match read {
            Ok(text) => add(&text, page, &mut draft)?,
            // The page may be legible.
            Err(ReadError::Busy) => return Err(ReadError::Busy),
            Err(error) => {
                tracing::debug!(page, %error, "a scanned page cannot be read");
                unread.push(page);
            }
        }
    }
    let mut blocks: Vec<_> = blocks.into_iter().chain(draft.finish().blocks).collect();
    // Stable, so that the order within a page stays.
    blocks.sort_by_key(|block| block.line);
    Ok(Document { title, blocks, place, scanned: unread })
}

/// Reads the text of a picture file.
pub fn read_picture(bytes: &[u8], limits: &ReadLimits) -> Result<Document, ReadError> {
    let program = limits.ocr.as_ref().filter(|program| program.is_installed());
    let Some(program) = program else { return Err(ReadError::Picture) };
    let picture = child_process::read_picture(bytes, limits)?;
    let mut draft = Draft::new(PositionUnit::Line, limits);
    let text = program.text(&picture)?;
    plain::paragraphs(&text, 1, |paragraph, lines| draft.push(BlockKind::Paragraph, paragraph, lines))?;
    Ok(draft.finish())
}

/// Adds the text of a page.
fn add(text: &str, page: u32, draft: &mut Draft) -> Result<(), ReadError> {
    plain::paragraphs(text, 1, |paragraph, _| draft.push(BlockKind::Paragraph, paragraph, (page, page)))
}

#[cfg(test)]
#[path = "ocr_tests.rs"]
mod tests;

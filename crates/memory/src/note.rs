//! Notes: sources without a file, named by their content.

use std::fmt::Write;
use std::time::SystemTime;

use sha2::{Digest, Sha256};

use crate::chunk::chunk;
use crate::index::{IndexOptions, nanoseconds, recipe, stored};
use crate::read::{BlockKind, Document, TextBlock};
use crate::store::{NewSource, SourceStamp};
use crate::types::{MemoryError, Note, PositionUnit};

/// Bytes of the hash in a name.
const NAME_BYTES: usize = 8;

/// Characters of the first line that are the default title.
const TITLE_CHARS: usize = 80;

pub(crate) fn note_source(note: Note, options: &IndexOptions) -> Result<NewSource, MemoryError> {
    let Note { title, text } = note;
    let text = text.trim();
    if text.is_empty() {
        return Err(MemoryError::EmptyNote);
    }
    let title = title.filter(|title| !title.trim().is_empty()).unwrap_or_else(|| first_line(text));
    let hash: [u8; 32] = Sha256::digest(text.as_bytes()).into();
    let mut path = "note:".to_owned();
    for byte in &hash[..NAME_BYTES] {
        // Writing to a string cannot fail.
        let _ = write!(path, "{byte:02x}");
    }
    let end_line = u32::try_from(text.lines().count()).unwrap_or(u32::MAX);
    let block = TextBlock { kind: BlockKind::Paragraph, text: text.to_owned(), line: 1, end_line };
    let document = Document { title: Some(title.clone()), blocks: vec![block], ..Document::default() };
    Ok(NewSource {
        collection: options.collection.clone(),
        path,
        place: PositionUnit::Line,
        chunks: chunk(&document, options.chunks).into_iter().map(|chunk| stored(chunk, &title)).collect(),
        title,
        stamp: SourceStamp {
            hash,
            modified: nanoseconds(Some(SystemTime::now())),
            size: text.len() as u64,
            recipe: recipe(options),
        },
    })
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(TITLE_CHARS).collect()
}

//! Files that a question has with it: pictures for the model to look at, and documents whose text it reads.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use hob_agents::picture_url;
use hob_conversations::{AttachmentKind, SavedAttachment};
use hob_memory::{OcrProgram, ReadError, ReadLimits, document_kind, read_file};

use crate::commands::memory::reader;

/// Bytes of a picture.
const LARGEST_PICTURE: u64 = 20 << 20;

/// Text of a document: more than any model reads.
const MOST_TEXT: usize = 8 << 20;

/// Bytes at the start of a file that show whether it is a picture.
const SIGNATURE_BYTES: u64 = 16;

/// Reads a picture or a document.
pub fn read_question_file(path: &Path) -> Result<SavedAttachment> {
    let mut start = Vec::new();
    let is_file = fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?.is_file();
    if is_file {
        let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        file.take(SIGNATURE_BYTES).read_to_end(&mut start)?;
    }
    match picture_url(&start) {
        Some(_) => read_picture(path),
        None => read_document(path),
    }
}

/// A picture as a `data:` URL.
pub fn read_picture(path: &Path) -> Result<SavedAttachment> {
    let shown = path.display();
    let cannot_read = || format!("cannot read the picture {shown}");
    // Checked before opening, because opening a pipe blocks.
    if !fs::metadata(path).with_context(cannot_read)?.is_file() {
        bail!("the picture {shown} is not a file.");
    }
    let mut bytes = Vec::new();
    let file = File::open(path).with_context(cannot_read)?;
    file.take(LARGEST_PICTURE + 1).read_to_end(&mut bytes).with_context(cannot_read)?;
    if bytes.len() as u64 > LARGEST_PICTURE {
        bail!("the picture {shown} is larger than {} MiB.", LARGEST_PICTURE >> 20);
    }
    match picture_url(&bytes) {
        Some(content) => Ok(SavedAttachment { name: name(path), kind: AttachmentKind::Image, content }),
        None => bail!("{shown} is not a PNG, JPEG, GIF, WebP or BMP picture."),
    }
}

/// The text of a document, by the readers of the memory.
pub fn read_document(path: &Path) -> Result<SavedAttachment> {
    let shown = path.display();
    let limits = ReadLimits {
        text_bytes: MOST_TEXT,
        reader_process: reader(),
        ocr: Some(OcrProgram::tesseract(None)),
        ..ReadLimits::default()
    };
    let document = read_file(path, &limits).map_err(|error| match error {
        // It would say twice that the file cannot be read.
        ReadError::Io(error) => anyhow!("cannot read {shown}: {error}"),
        error => anyhow!("cannot read {shown}: {error}"),
    })?;
    let text: Vec<&str> = document.blocks.iter().map(|block| block.text.as_str()).collect();
    let text = text.join("\n\n");
    if text.trim().is_empty() {
        let hint = match document_kind(&path.to_string_lossy()) {
            "PDF" | "picture" => " If its pages are pictures, attach them as pictures.",
            _ => "",
        };
        bail!("{shown} has no text.{hint}");
    }
    Ok(SavedAttachment { name: name(path), kind: AttachmentKind::Text, content: text })
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

//! Reads files as text. Every reader gets untrusted bytes, and is limited in time, memory and output.
//!
//! Knows nothing of chunks or the index.

mod attachment;
mod bounded_process;
pub mod child_process;
mod code;
mod decode;
mod document;
mod docx;
mod draft;
mod error;
mod html;
mod json;
mod kind;
mod limits;
mod mail;
mod mailbox;
mod markdown;
mod number_format;
mod ocr;
mod ocr_program;
mod odf;
mod office_archive;
mod page_picture;
mod pdf;
mod pdf_scan;
mod plain;
mod pptx;
mod process_slots;
mod regular_file;
mod table;
mod table_rows;
mod xlsx;

use std::path::Path;

pub use attachment::{AttachmentReader, FileText, MAX_ATTACHMENT_BYTES};
pub use document::{BlockKind, Document, TextBlock};
pub use error::ReadError;
pub use kind::document_kind;
pub use limits::{ReadLimits, ReaderProcess};
pub use ocr_program::OcrProgram;
pub use regular_file::SourceFile;

/// Reads a file. Blocks.
pub fn read_file(path: &Path, limits: &ReadLimits) -> Result<Document, ReadError> {
    SourceFile::open(path, limits)?.document(limits)
}

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod read_tests;
#[cfg(test)]
pub(crate) mod samples;

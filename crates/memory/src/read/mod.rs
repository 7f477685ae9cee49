//! Reads files as text. Every reader gets untrusted bytes, and is limited in time, memory and output.
//!
//! Knows nothing of chunks or the index.

pub mod child_process;
mod code;
mod decode;
mod docx;
mod draft;
mod error;
mod html;
mod json;
mod kind;
mod mail;
mod markdown;
mod pdf;
mod plain;
mod source;
mod table;

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::types::PositionUnit;
use child_process::ReaderProcess;
pub use error::ReadError;
pub use source::SourceFile;

/// The text of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    pub title: Option<String>,
    pub blocks: Vec<TextBlock>,
    /// The unit of `TextBlock::line`.
    pub place: PositionUnit,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextBlock {
    pub kind: BlockKind,
    pub text: String,
    /// The first and last position in the source, from 1.
    pub line: u32,
    pub end_line: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum BlockKind {
    /// From 1, the outermost, to 6.
    Heading(u8),
    Paragraph,
    Code,
    /// Records of a table, one on each line.
    Row,
}

/// The limits of reading a file.
#[derive(Debug, Clone)]
pub struct ReadLimits {
    /// The largest file.
    pub file_bytes: u64,
    /// The most text of a document, and the most unpacked bytes.
    pub text_bytes: usize,
    /// The most pages of a PDF.
    pub pages: usize,
    /// The time limit of the child process.
    pub time: Duration,
    /// The child process for risky formats. Without it, this process reads them.
    pub reader_process: Option<ReaderProcess>,
}

impl Default for ReadLimits {
    fn default() -> Self {
        ReadLimits {
            file_bytes: 64 << 20,
            text_bytes: 64 << 20,
            pages: 5_000,
            time: Duration::from_secs(30),
            reader_process: None,
        }
    }
}

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

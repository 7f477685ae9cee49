//! Files into text. Every reader takes bytes from outside and is bounded in time, memory and output.
//!
//! Knows nothing of chunks, of the index or of what a text is for.

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

/// What a file says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    pub title: Option<String>,
    pub blocks: Vec<TextBlock>,
    /// What the numbers in `TextBlock::line` count.
    pub place: PositionUnit,
}

/// A part of a document that belongs together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextBlock {
    pub kind: BlockKind,
    pub text: String,
    /// Where it begins and ends in the source, counted from 1.
    pub line: u32,
    pub end_line: u32,
}

/// What a block is to its reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum BlockKind {
    /// From 1, the outermost, to 6.
    Heading(u8),
    Paragraph,
    Code,
    /// Records of a table, one on each line.
    Row,
}

/// What reading a file may cost.
#[derive(Debug, Clone)]
pub struct ReadLimits {
    /// The largest file that is read at all.
    pub file_bytes: u64,
    /// The most text that is taken out of a document, and the most that is unpacked on the way.
    pub text_bytes: usize,
    /// The most pages of a PDF.
    pub pages: usize,
    /// The longest time for a file that a child process reads.
    pub time: Duration,
    /// The process that reads files which a server should not read itself. Without it, this process reads them.
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

/// Reads a file. Blocks while it does.
pub fn read_file(path: &Path, limits: &ReadLimits) -> Result<Document, ReadError> {
    SourceFile::open(path, limits)?.document(limits)
}

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod read_tests;
#[cfg(test)]
pub(crate) mod samples;

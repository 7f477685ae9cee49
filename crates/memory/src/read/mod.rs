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

use child_process::Apart;
pub use error::ReadError;
pub use source::Source;

/// What a file says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    pub title: Option<String>,
    pub blocks: Vec<Block>,
    /// What the numbers in `Block::line` count.
    pub place: Place,
}

/// What the numbers of blocks count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    #[default]
    Line,
    /// PDF has pages and no lines.
    Page,
    /// DOCX has neither.
    Paragraph,
}

/// A part of a document that belongs together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
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
pub struct Limits {
    /// The largest file that is read at all.
    pub file_bytes: u64,
    /// The most text that is taken out of a document, and the most that is unpacked on the way.
    pub text_bytes: usize,
    /// The most pages of a PDF.
    pub pages: usize,
    /// How long a file may take that is read in a process apart.
    pub time: Duration,
    /// How to start the process that reads files nobody should read inside a server. Without it they are read here.
    pub apart: Option<Apart>,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            file_bytes: 64 << 20,
            text_bytes: 64 << 20,
            pages: 5_000,
            time: Duration::from_secs(30),
            apart: None,
        }
    }
}

/// Reads a file. Blocks while it does.
pub fn read_file(path: &Path, limits: &Limits) -> Result<Document, ReadError> {
    Source::open(path, limits)?.document(limits)
}

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod read_tests;
#[cfg(test)]
pub(crate) mod samples;

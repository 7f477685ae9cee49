//! The text of a file.

use serde::{Deserialize, Serialize};

use crate::types::PositionUnit;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    pub title: Option<String>,
    pub blocks: Vec<TextBlock>,
    /// The unit of `TextBlock::line`.
    pub place: PositionUnit,
    /// Pages without text that show a picture, from 1.
    #[serde(default)]
    pub scanned: Vec<u32>,
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

//! Markdown as models write it: one parser for the terminal and for the pages. `html` renders it for browsers, and `pieces` renders
//! a text that grows, so that finished blocks are not rendered again. The terminal's renderer is in the crate `cli`.
//!
//! Blocks do not depend on each other: there are no definitions of link addresses and no footnotes, so text that follows
//! never changes a block that is complete.

mod cut;
mod delimiters;
mod html;
mod pieces;
mod source;

pub use self::cut::{BlockCut, cut};
pub use self::pieces::{Continuation, MarkdownPiece, RenderedPieces, render};
pub use self::source::{MarkdownSource, block_starts, is_line_break};

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;

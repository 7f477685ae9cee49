//! A text as pieces of HTML. All but the last are complete, so a page that shows a growing text keeps their nodes and asks
//! only for what follows. Rendering a whole stream takes time in proportion to its length.

use serde::{Deserialize, Serialize};

use super::cut::{BlockCut, cut};
use super::html::HtmlRenderer;

/// Bytes that are parsed at once. A longer block is cut, so that the memory for parsing does not grow with the text.
const WINDOW: usize = 32 << 10;

/// Bytes of an incomplete block that are rendered again while the text grows.
const LONGEST_OPEN: usize = 4 << 10;

/// What a later part of a text depends on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Continuation {
    /// The rank of the last heading.
    #[serde(default)]
    pub rank: u8,
    /// The lines that opened the block that continues, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opening: Option<String>,
}

/// HTML of one or more blocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MarkdownPiece {
    pub html: String,
    /// Whether its first element continues the last element of the piece before: more lines, items or rows.
    pub continues: bool,
}

/// A text in pieces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedPieces {
    /// Text that follows can change only the last one.
    pub pieces: Vec<MarkdownPiece>,
    /// Where the last piece begins.
    pub settled: usize,
    /// Passed to the next call, with the text from `settled` on.
    pub after: Continuation,
}

/// Renders a whole text, or with `after` the rest of a text that still grows.
pub fn render(text: &str, after: Option<Continuation>) -> RenderedPieces {
    let longest = if after.is_some() { LONGEST_OPEN } else { usize::MAX };
    let mut after = after.unwrap_or_default();
    let mut pieces = Vec::new();
    let mut settled = 0;
    loop {
        let rest = &text[settled..];
        let window = first_window(rest);
        let is_last = window.len() == rest.len();
        let opening = after.opening.as_deref().unwrap_or_default();
        let source = format!("{opening}{window}");
        let found = cut(&source, if is_last { longest } else { 0 }).filter(|cut| cut.at > opening.len());
        let end = found.as_ref().map_or(source.len(), |cut| cut.at);
        let advance = end - opening.len();
        let (html, rank) = HtmlRenderer::render(&source[..end], after.rank, after.opening.as_deref());
        pieces.push(MarkdownPiece { html, continues: after.opening.is_some() });
        match found {
            None if is_last => return RenderedPieces { pieces, settled, after },
            // A block without a place to cut it.
            None => after = Continuation { rank, opening: None },
            Some(BlockCut { opening, .. }) => after = Continuation { rank, opening },
        }
        settled += advance;
    }
}

/// As much of the text as is parsed at once, in whole lines if possible, or else in whole words.
fn first_window(text: &str) -> &str {
    let window = &text[..text.floor_char_boundary(WINDOW)];
    let end = window.rfind('\n').or_else(|| window.rfind(' ')).filter(|_| window.len() < text.len());
    end.map_or(window, |end| &window[..=end])
}

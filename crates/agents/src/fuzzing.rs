//! Entries for the fuzz targets: what a model writes. Each takes any bytes and panics if a promise of the crate is broken. Only in
//! builds with `--cfg fuzzing`.

use crate::code_blocks::code_blocks;
use crate::protocol::TextFilter;
use crate::react_text::{FinalAnswerFilter, parse, render};

pub use crate::tools::fuzzing::tool_arguments;

/// The text of an answer, in the protocols of the agents `react` and `codeact`.
pub fn agent_text(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = render(&parse(text));
    let letters: Vec<char> = text.chars().collect();
    let pieces = letters.chunks(1 + letters.len() % 17).map(|piece| piece.iter().collect::<String>());
    let whole = FinalAnswerFilter::default().pass(text);
    let mut filter = FinalAnswerFilter::default();
    let in_pieces: String = pieces.map(|piece| filter.pass(&piece)).collect();
    assert_eq!(whole, in_pieces, "pieces change what is forwarded");
    let blocks = code_blocks(text);
    let code: usize = blocks.iter().map(|block| block.code.len()).sum();
    // A line feed is added to a last line that has none.
    assert!(code <= text.len() + 1, "code blocks have more text than the answer");
}

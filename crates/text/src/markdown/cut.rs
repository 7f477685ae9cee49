//! Where a text that grows can be cut: what is before the cut is complete.

use pulldown_cmark::{CodeBlockKind, Event, Tag};

use super::source::{MarkdownSource, line_start};

/// A place between two blocks, or between two lines of code, items of a list or rows of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockCut {
    pub at: usize,
    /// Inside a block, the lines that open it. The rest is parsed with them in front.
    pub opening: Option<String>,
    /// Whether that block is code.
    pub is_code: bool,
}

/// The kind of the last block, if it can be cut.
enum Kind {
    Code,
    List,
    Table,
    Other,
}

/// The last cut of a text. A block that is longer than `longest` is cut too, where its kind allows it.
pub fn cut(text: &str, longest: usize) -> Option<BlockCut> {
    // A line without its end may still belong to the block above.
    let lines = &text[..text.rfind('\n')? + 1];
    let mut depth = 0_usize;
    let mut block = 0;
    let mut kind = Kind::Other;
    // The last line, item or row of the last block.
    let mut part = 0;
    for (event, range) in MarkdownSource::new(lines).events() {
        if depth == 0 {
            block = line_start(lines, range.start);
            part = block;
            kind = match &event {
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) => Kind::Code,
                Event::Start(Tag::List(_)) => Kind::List,
                Event::Start(Tag::Table(_)) => Kind::Table,
                _ => Kind::Other,
            };
        }
        match event {
            Event::Start(tag) => {
                if depth == 1 && matches!(tag, Tag::Item | Tag::TableRow) {
                    part = line_start(lines, range.start);
                }
                depth += 1;
            }
            Event::End(_) => depth -= 1,
            Event::Text(_) if depth == 1 && matches!(kind, Kind::Code) => {
                part = line_start(lines, range.end.saturating_sub(1));
            }
            _ => {}
        }
    }
    if block > 0 {
        return Some(BlockCut { at: block, opening: None, is_code: false });
    }
    let opening_lines = match kind {
        Kind::Code => 1,
        Kind::List => 0,
        Kind::Table => 2,
        Kind::Other => return None,
    };
    let opening: String = lines.split_inclusive('\n').take(opening_lines).collect();
    let is_long = lines.len() > longest && part > opening.len();
    is_long.then_some(BlockCut { at: part, opening: Some(opening), is_code: opening_lines == 1 })
}

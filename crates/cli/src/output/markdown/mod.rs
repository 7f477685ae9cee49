//! Markdown as a terminal shows it, while it is still being written. What was shown is never taken back, so nothing
//! flickers: a word appears once nothing that may follow it can change how it looks.
//!
//! The parser is that of the pages, `hob_text::markdown`. Knows nothing of who writes the text, and writes nowhere itself.

mod block;
mod canvas;
mod look;
mod settled;
mod table;
mod words;

use std::mem;

use hob_text::markdown::{block_starts, cut};

use self::block::render;
pub use self::look::MarkdownLook;
use self::settled::{decided, settled};
use crate::output::text::printable;

/// A block that is longer is shown as far as it came, and what follows is another one.
const LONGEST_BLOCK: usize = 64 << 10;

/// Of code that is longer, the lines that are shown are dropped.
const LONGEST_CODE: usize = 4 << 10;

/// A longer piece is taken bit by bit, because every look at a text begins where its block does.
const LONGEST_BIT: usize = 1 << 10;

/// A text under way.
pub struct Markdown {
    look: MarkdownLook,
    /// What is not completely shown. Begins where a block does.
    source: String,
    /// What is shown of the block that `source` begins with.
    shown: String,
    /// Whether anything was shown.
    has_begun: bool,
}

impl Markdown {
    pub fn new(look: MarkdownLook) -> Self {
        Markdown { look, source: String::new(), shown: String::new(), has_begun: false }
    }

    /// Takes the next piece, and gives what can be shown now.
    pub fn push(&mut self, piece: &str) -> String {
        let mut out = String::new();
        let piece = printable(piece);
        let mut rest = &*piece;
        while !rest.is_empty() {
            let (bit, others) = rest.split_at(rest.floor_char_boundary(LONGEST_BIT));
            self.source.push_str(bit);
            if words::may_end_a_word(bit) {
                self.advance(&mut out);
            }
            if self.source.len() > LONGEST_BLOCK {
                self.close(&mut out);
            }
            rest = others;
        }
        out
    }

    /// The text is complete. Gives the rest of it, and the end of its last line.
    pub fn finish(mut self) -> String {
        if !self.source.is_empty() && !self.source.ends_with('\n') {
            self.source.push('\n');
        }
        let mut out = String::new();
        self.advance(&mut out);
        self.close(&mut out);
        if self.has_begun {
            out.push('\n');
        }
        out
    }

    /// Shows all that is settled.
    fn advance(&mut self, out: &mut String) {
        loop {
            if self.shown.is_empty() {
                drop_blank_lines(&mut self.source);
            }
            let decided = decided(&self.source);
            // Where another block begins, nothing more comes for the first one.
            let Some(next) = block_starts(&self.source[..decided]).get(1).copied() else {
                let settled = settled(&self.source[..decided]);
                self.show(render(&self.source[..settled], self.look), out);
                return self.shorten_code();
            };
            self.show(render(&self.source[..next], self.look), out);
            self.shown.clear();
            self.source.drain(..next);
        }
    }

    /// Drops lines of long code, so that they are not rendered again with every line that follows.
    fn shorten_code(&mut self) {
        let long = (self.source.len() > LONGEST_CODE).then(|| cut(&self.source, LONGEST_CODE)).flatten();
        if let Some((at, opening)) = long.and_then(|cut| Some((cut.at, cut.opening.filter(|_| cut.is_code)?)))
        {
            self.source.replace_range(..at, &opening);
            let settled = settled(&self.source[..decided(&self.source)]);
            self.shown = render(&self.source[..settled], self.look);
        }
    }

    /// Shows the block that is open as a whole.
    fn close(&mut self, out: &mut String) {
        let source = mem::take(&mut self.source);
        if !source.trim().is_empty() {
            self.show(render(&source, self.look), out);
            self.shown.clear();
        }
    }

    /// Shows what a block has become.
    fn show(&mut self, rendered: String, out: &mut String) {
        // What is held back for now may have been shown.
        if self.shown.starts_with(&rendered) {
            return;
        }
        if self.shown.is_empty() && mem::replace(&mut self.has_begun, true) {
            out.push_str("\n\n");
        }
        match rendered.strip_prefix(&self.shown) {
            Some(rest) => out.push_str(rest),
            None => {
                // The text took a turn that could not be foreseen. From there on it is shown again, rather than lost.
                let same = common_lines(&self.shown, &rendered);
                out.push('\n');
                out.push_str(&rendered[same..]);
            }
        }
        self.shown = rendered;
    }
}

fn drop_blank_lines(source: &mut String) {
    while let Some((line, _)) = source.split_once('\n').filter(|(line, _)| line.trim().is_empty()) {
        source.drain(..=line.len());
    }
}

/// Bytes of the lines that both begin with.
fn common_lines(left: &str, right: &str) -> usize {
    let lines = left.split_inclusive('\n').zip(right.split_inclusive('\n'));
    lines.take_while(|(left, right)| left == right).map(|(_, line)| line.len()).sum()
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;

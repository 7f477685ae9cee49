//! Markdown as a terminal shows it, while it is still being written. What was shown is never taken back, so nothing
//! flickers: a word appears once nothing that may follow it can change how it looks.
//!
//! Knows nothing of who writes the text, and writes nowhere itself.

mod block;
mod canvas;
mod fence;
mod look;
mod parsing;
mod settled;
mod table;
mod words;

use std::mem;

use pulldown_cmark::Event;

use self::block::render;
use self::fence::Fence;
pub use self::look::MarkdownLook;
use self::parsing::{parsable, parser};
use self::settled::{decided, settled};
use crate::output::style::{DIM, NAME};
use crate::output::text::printable;

/// A block that is longer is shown as far as it came, and what follows is another one.
const LONGEST_BLOCK: usize = 64 << 10;

/// A longer piece is taken bit by bit, because every look at a text begins where its block does.
const LONGEST_BIT: usize = 1 << 10;

/// A text under way.
pub struct Markdown {
    look: MarkdownLook,
    /// What is not completely shown. Begins where a block does, or a line of `fence`.
    source: String,
    /// What is shown of the block that `source` begins with.
    shown: String,
    /// The block of code we are in.
    fence: Option<Fence>,
    /// Whether anything was shown.
    has_begun: bool,
}

impl Markdown {
    pub fn new(look: MarkdownLook) -> Self {
        Markdown { look, source: String::new(), shown: String::new(), fence: None, has_begun: false }
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
            if let Some(fence) = &self.fence {
                let Some(line) = take_line(&mut self.source) else { return };
                let is_end = fence.is_closed_by(&line);
                let style = self.look.style(if is_end { DIM } else { NAME });
                out.push_str(&format!("\n{style}{line}{style:#}"));
                if is_end {
                    self.fence = None;
                }
                continue;
            }
            if self.shown.is_empty() {
                drop_blank_lines(&mut self.source);
                if let Some(fence) = self.source.split_once('\n').and_then(|(line, _)| Fence::opened_by(line))
                {
                    let line = take_line(&mut self.source).unwrap_or_default();
                    let style = self.look.style(DIM);
                    self.show(format!("{style}{}{style:#}", line.trim()), out);
                    self.shown.clear();
                    self.fence = Some(fence);
                    continue;
                }
            }
            let decided = decided(&self.source);
            if let Some(next) = second_block(&self.source[..decided]) {
                self.show(render(&self.source[..next], self.look), out);
                self.shown.clear();
                self.source.drain(..next);
                continue;
            }
            let settled = settled(&self.source[..decided]);
            return self.show(render(&self.source[..settled], self.look), out);
        }
    }

    /// Shows the block that is open as a whole.
    fn close(&mut self, out: &mut String) {
        let source = mem::take(&mut self.source);
        if self.fence.is_some() {
            if !source.is_empty() {
                let style = self.look.style(NAME);
                out.push_str(&format!("\n{style}{source}{style:#}"));
            }
        } else if !source.trim().is_empty() {
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

/// Takes the first line off, if it is complete.
fn take_line(source: &mut String) -> Option<String> {
    let end = source.find('\n')?;
    let line = source[..end].to_owned();
    source.drain(..=end);
    Some(line)
}

fn drop_blank_lines(source: &mut String) {
    while source.split_once('\n').is_some_and(|(line, _)| line.trim().is_empty()) {
        take_line(source);
    }
}

/// Where the second block begins. There is nothing more to come for the first one then.
fn second_block(source: &str) -> Option<usize> {
    let mut depth = 0;
    let mut blocks = 0;
    for (event, range) in parser(&parsable(source)).into_offset_iter() {
        if depth == 0 {
            blocks += 1;
            if blocks == 2 {
                // With its indentation.
                return Some(source[..range.start].rfind('\n').map_or(0, |at| at + 1));
            }
        }
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Bytes of the lines that both begin with.
fn common_lines(left: &str, right: &str) -> usize {
    let lines = left.split_inclusive('\n').zip(right.split_inclusive('\n'));
    lines.take_while(|(left, right)| left == right).map(|(_, line)| line.len()).sum()
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;

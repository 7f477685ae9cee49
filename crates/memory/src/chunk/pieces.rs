//! Blocks of text into pieces that are small enough, cut where a reader would cut: between groups of lines, lines, sentences,
//! words, and only then inside a word.

use unicode_segmentation::UnicodeSegmentation;

use crate::read::{BlockKind, TextBlock};
use crate::tokens;

/// A part of a block that is not cut any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece<'a> {
    pub kind: BlockKind,
    pub text: &'a str,
    /// What stands between this piece and the one before it, where both are in one chunk.
    pub gap: &'static str,
    pub line: u32,
    pub end_line: u32,
    /// Those of the text, without the gap.
    pub tokens: usize,
}

/// Where a text may be cut, from the best place to the worst.
#[derive(Debug, Clone, Copy)]
enum Border {
    /// After an empty line.
    Group,
    Line,
    Sentence,
    Word,
    /// Between any two characters.
    Character,
}

fn borders(kind: BlockKind) -> &'static [Border] {
    match kind {
        BlockKind::Code => &[Border::Group, Border::Line, Border::Word, Border::Character],
        BlockKind::Heading(_) | BlockKind::Paragraph | BlockKind::Row => {
            &[Border::Sentence, Border::Word, Border::Character]
        }
    }
}

/// The block in pieces of at most `limit` tokens: one, if it fits. Nothing but blank space is left out.
pub fn pieces(block: &TextBlock, limit: usize) -> Vec<Piece<'_>> {
    let mut found = Pieces { block, limit, found: Vec::new(), end: 0, line: block.line };
    found.cut(0, &block.text, borders(block.kind));
    if let Some(first) = found.found.first_mut() {
        first.gap = if block.kind == BlockKind::Row { "\n" } else { "\n\n" };
    }
    found.found
}

struct Pieces<'a> {
    block: &'a TextBlock,
    limit: usize,
    found: Vec<Piece<'a>>,
    /// Where the last piece ends, and on which line.
    end: usize,
    line: u32,
}

impl<'a> Pieces<'a> {
    fn cut(&mut self, at: usize, text: &'a str, borders: &[Border]) {
        let (blank, text) = without_blank(text, self.block.kind);
        let at = at + blank;
        if text.is_empty() {
            return;
        }
        match (tokens::count_up_to(text, self.limit), borders) {
            (Some(tokens), _) => self.push(at, text, tokens),
            // Parts cut between characters always fit, so there is always a border left to try.
            (None, []) => {}
            (None, [border, finer @ ..]) => {
                let mut begin = 0;
                for part in parts(text, *border, self.limit) {
                    self.cut(at + begin, part, finer);
                    begin += part.len();
                }
            }
        }
    }

    fn push(&mut self, at: usize, text: &'a str, tokens: usize) {
        let between = &self.block.text[self.end..at];
        let line = self.later(self.line, between);
        let end_line = self.later(line, text);
        self.found.push(Piece { kind: self.block.kind, text, gap: gap(between), line, end_line, tokens });
        self.end = at + text.len();
        self.line = end_line;
    }

    /// Line feeds count lines only where the block has as many in its source.
    fn later(&self, line: u32, text: &str) -> u32 {
        let feeds = text.bytes().filter(|byte| *byte == b'\n').count();
        line.saturating_add(u32::try_from(feeds).unwrap_or(u32::MAX)).min(self.block.end_line.max(line))
    }
}

/// The text without blank space around it, and how much was left out before it. Indentation means something in code.
fn without_blank(text: &str, kind: BlockKind) -> (usize, &str) {
    let words = text.trim_start();
    let blank = &text[..text.len() - words.len()];
    let blank = match kind {
        BlockKind::Code if !words.is_empty() => blank.rfind('\n').map_or(0, |at| at + 1),
        _ => blank.len(),
    };
    (blank, text[blank..].trim_end())
}

/// Blank space, folded to what it means.
fn gap(between: &str) -> &'static str {
    match between.bytes().filter(|byte| *byte == b'\n').count() {
        0 if between.is_empty() => "",
        0 => " ",
        1 => "\n",
        _ => "\n\n",
    }
}

/// Cuts the text at every border. The parts put together are the text.
fn parts<'a>(text: &'a str, border: Border, limit: usize) -> Box<dyn Iterator<Item = &'a str> + 'a> {
    match border {
        Border::Group => Box::new(groups(text)),
        Border::Line => Box::new(text.split_inclusive('\n')),
        Border::Sentence => Box::new(text.split_sentence_bounds()),
        Border::Word => Box::new(text.split_inclusive(char::is_whitespace)),
        Border::Character => Box::new(lengths(text, limit)),
    }
}

/// Lines up to and with the empty ones after them.
fn groups(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut end = 0;
        let mut is_after_blank = false;
        for line in rest.split_inclusive('\n') {
            let is_blank = line.trim().is_empty();
            if is_after_blank && !is_blank {
                break;
            }
            is_after_blank = is_blank;
            end += line.len();
        }
        let (group, later) = rest.split_at(end);
        rest = later;
        (!group.is_empty()).then_some(group)
    })
}

/// Parts of at most `limit` bytes. A token has at least one byte, so each has at most `limit` tokens.
fn lengths(text: &str, limit: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        // No character is longer than four bytes.
        let (part, later) = rest.split_at(rest.floor_char_boundary(limit.max(4)));
        rest = later;
        (!part.is_empty()).then_some(part)
    })
}

/// The end of a piece, at most `limit` tokens of it: whole lines or sentences, or else whole words.
pub fn tail<'a>(piece: &Piece<'a>, limit: usize) -> Option<Piece<'a>> {
    if piece.tokens <= limit {
        return Some(*piece);
    }
    let whole = borders(piece.kind).iter().filter(|border| !matches!(border, Border::Character));
    whole.into_iter().find_map(|border| tail_at(piece, *border, limit))
}

fn tail_at<'a>(piece: &Piece<'a>, border: Border, limit: usize) -> Option<Piece<'a>> {
    let parts = parts(piece.text, border, limit).collect::<Vec<_>>();
    let (mut from, mut tokens) = (piece.text.len(), 0);
    for part in parts.iter().rev() {
        match tokens::count_up_to(part, limit - tokens) {
            Some(more) => tokens += more,
            None => break,
        }
        from -= part.len();
    }
    let (_, text) = without_blank(&piece.text[from..], piece.kind);
    // Parts that are put together again may have fewer tokens.
    (!text.is_empty()).then(|| Piece { text, tokens: tokens::count(text), ..*piece })
}

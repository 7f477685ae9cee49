//! Cuts blocks into small pieces: between groups of lines, lines, sentences, words, and only then inside a word.

use unicode_segmentation::UnicodeSegmentation;

use crate::read::{BlockKind, TextBlock};
use crate::tokens;

/// Blanks, closing marks and signs in a row after a full stop, after which a sentence may be cut.
const MAX_RUN: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece<'a> {
    pub kind: BlockKind,
    pub text: &'a str,
    /// The separator from the piece before, if both are in one chunk.
    pub gap: &'static str,
    pub line: u32,
    pub end_line: u32,
    /// Without the gap.
    pub tokens: usize,
}

/// Where a text may be cut, best first.
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

/// The block in pieces of at most `limit` tokens. Only blank space is dropped.
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
    /// The end and the line of the last piece.
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
            // Single characters always fit, so another border always remains.
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

    /// Line feeds count as lines only if the source has as many.
    fn later(&self, line: u32, text: &str) -> u32 {
        let feeds = text.bytes().filter(|byte| *byte == b'\n').count();
        line.saturating_add(u32::try_from(feeds).unwrap_or(u32::MAX)).min(self.block.end_line.max(line))
    }
}

/// The trimmed text, and the number of bytes removed at its start. Indentation is kept in code.
fn without_blank(text: &str, kind: BlockKind) -> (usize, &str) {
    let words = text.trim_start();
    let blank = &text[..text.len() - words.len()];
    let blank = match kind {
        BlockKind::Code if !words.is_empty() => blank.rfind('\n').map_or(0, |at| at + 1),
        _ => blank.len(),
    };
    (blank, text[blank..].trim_end())
}

/// Normalised blank space.
fn gap(between: &str) -> &'static str {
    match between.bytes().filter(|byte| *byte == b'\n').count() {
        0 if between.is_empty() => "",
        0 => " ",
        1 => "\n",
        _ => "\n\n",
    }
}

/// Cuts the text at every border. The parts make up the text.
fn parts<'a>(text: &'a str, border: Border, limit: usize) -> Box<dyn Iterator<Item = &'a str> + 'a> {
    match border {
        Border::Group => Box::new(groups(text)),
        Border::Line => Box::new(text.split_inclusive('\n')),
        Border::Sentence => Box::new(short_runs(text).flat_map(|part| part.split_sentence_bounds())),
        Border::Word => Box::new(text.split_inclusive(char::is_whitespace)),
        Border::Character => Box::new(lengths(text, limit)),
    }
}

/// Groups of lines, including the empty ones after them.
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

/// Parts with short runs of blanks, closing marks and signs after a full stop. The search for the end of a sentence looks ahead from
/// each of them, so the time for a long run would grow with the square of its length.
fn short_runs(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        // The length of a run after a full stop.
        let mut run: Option<usize> = None;
        let is_too_long = |character: char| {
            run = match (character, run) {
                ('.' | '\u{2024}' | '\u{fe52}' | '\u{ff0e}', _) => Some(0),
                (other, Some(length)) if !ends_run(other) => Some(length + 1),
                _ => None,
            };
            run.is_some_and(|length| length > MAX_RUN)
        };
        let (part, later) = rest.split_at(rest.find(is_too_long).unwrap_or(rest.len()));
        rest = later;
        (!part.is_empty()).then_some(part)
    })
}

/// Whether no search looks ahead from the characters after this one.
fn ends_run(character: char) -> bool {
    match character {
        ' ' | '\t' | '\u{b}' | '\u{c}' | '(' | ')' | '[' | ']' | '{' | '}' | '"' | '\'' => false,
        '\0'..='\u{7f}' => true,
        // A sign that is written below a vowel, and counts as a small letter.
        '\u{345}' => false,
        letter if letter.is_lowercase() => true,
        // A letter begins a sentence. A sign belongs to the character before, and many signs count as letters elsewhere.
        other => format!(".{other}").split_sentence_bounds().count() > 1,
    }
}

/// Parts of at most `limit` bytes. A token has at least one byte, so each has at most `limit` tokens.
fn lengths(text: &str, limit: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        // A character has at most four bytes.
        let (part, later) = rest.split_at(rest.floor_char_boundary(limit.max(4)));
        rest = later;
        (!part.is_empty()).then_some(part)
    })
}

/// The end of a piece with at most `limit` tokens: whole lines or sentences, or else words.
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
    // Joined parts may have fewer tokens.
    (!text.is_empty()).then(|| Piece { text, tokens: tokens::count(text), ..*piece })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_any_script_are_no_run() {
        for word in ["word ", "слово ", "단어 ", "كلمة ", "शब्द ", "คำ ", "「言」、"]
        {
            let text = format!("One. {}", word.repeat(200));
            assert_eq!(short_runs(&text).collect::<Vec<_>>(), [text.as_str()]);
        }
    }
}

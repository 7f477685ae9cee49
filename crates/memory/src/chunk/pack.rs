//! Packs pieces into chunks.

use super::pieces::{Piece, pieces, tail};
use super::types::{Chunk, ChunkOptions};
use crate::read::{BlockKind, Document};
use crate::tokens;

/// A chunk that is less full than this fraction continues after a heading, because very short sections are not chunks.
const SMALL: usize = 4;

/// The longest title, in characters. It is stored with each chunk.
const MAX_TITLE: usize = 200;

pub fn pack(document: &Document, options: ChunkOptions) -> Vec<Chunk> {
    let mut packer = Packer::new(document, options);
    // Headings that wait for their text.
    let mut headings: Vec<Piece> = Vec::new();
    for block in &document.blocks {
        if let BlockKind::Heading(level) = block.kind {
            let found = pieces(block, options.size());
            if cost(&headings) + cost(&found) > options.size() / 2 {
                packer.add(&headings);
                headings.clear();
            }
            if headings.is_empty() {
                packer.begin_section();
            }
            packer.path.enter(level, &block.text);
            headings.extend(found);
            continue;
        }
        let room = options.size().saturating_sub(cost(&headings) + 1).max(options.size() / 3);
        let mut unit = std::mem::take(&mut headings);
        for piece in pieces(block, room) {
            unit.push(piece);
            packer.add(&unit);
            unit.clear();
        }
        // A blank block.
        headings = unit;
    }
    packer.add(&headings);
    packer.finish()
}

/// An upper bound of the tokens of the pieces. Blank space may be a token.
fn cost(pieces: &[Piece]) -> usize {
    pieces.iter().map(|piece| piece.tokens + usize::from(!piece.gap.is_empty())).sum()
}

/// The current headings.
struct Path<'a> {
    title: Option<&'a str>,
    headings: Vec<(u8, &'a str)>,
}

impl<'a> Path<'a> {
    fn enter(&mut self, level: u8, heading: &'a str) {
        self.headings.retain(|(above, _)| *above < level);
        self.headings.push((level, heading.trim()));
    }

    fn title(&self) -> String {
        let headings = self.headings.iter().map(|(_, heading)| *heading);
        // The title of a document is often also its first heading.
        let headings = headings.filter(|heading| Some(*heading) != self.title);
        let names = self.title.into_iter().chain(headings).filter(|name| !name.is_empty());
        // Only the start of a name can be in the title. A long heading is cut into many chunks, and each has a title.
        let title = names.map(|name| start_of(name, MAX_TITLE + 1)).collect::<Vec<_>>().join(" › ");
        match title.char_indices().nth(MAX_TITLE) {
            Some((end, _)) => format!("{}…", &title[..end]),
            None => title,
        }
    }
}

/// The first characters of a text.
fn start_of(text: &str, characters: usize) -> &str {
    text.char_indices().nth(characters).map_or(text, |(end, _)| &text[..end])
}

struct Packer<'a> {
    options: ChunkOptions,
    path: Path<'a>,
    chunks: Vec<Chunk>,
    /// The current chunk: its overlap, its own pieces, and its title.
    repeated: Vec<Piece<'a>>,
    own: Vec<Piece<'a>>,
    used: usize,
    title: String,
    /// The own pieces of the chunk before, in the same section.
    before: Vec<Piece<'a>>,
}

impl<'a> Packer<'a> {
    fn new(document: &'a Document, options: ChunkOptions) -> Self {
        Packer {
            options,
            path: Path { title: document.title.as_deref().map(str::trim), headings: Vec::new() },
            chunks: Vec::new(),
            repeated: Vec::new(),
            own: Vec::new(),
            used: 0,
            title: String::new(),
            before: Vec::new(),
        }
    }

    fn begin_section(&mut self) {
        if self.used > self.options.size() / SMALL {
            self.close();
            self.before.clear();
        }
    }

    /// Adds pieces, which stay together if they fit into a chunk.
    fn add(&mut self, unit: &[Piece<'a>]) {
        let more = cost(unit);
        if more > self.options.size() && unit.len() > 1 {
            unit.iter().for_each(|piece| self.add(std::slice::from_ref(piece)));
            return;
        }
        // Closing may leave a rest.
        while !self.own.is_empty() && self.used + more > self.options.size() {
            self.close();
        }
        if self.own.is_empty() && !unit.is_empty() {
            self.repeat(unit, more);
            self.title = self.path.title();
        }
        self.own.extend_from_slice(unit);
        self.used += more;
    }

    /// Starts a chunk with the end of the one before.
    fn repeat(&mut self, unit: &[Piece<'a>], more: usize) {
        self.used = 0;
        self.repeated.clear();
        let before = std::mem::take(&mut self.before);
        // Headings and rows of a table need no overlap.
        if !unit.first().is_some_and(|piece| matches!(piece.kind, BlockKind::Paragraph | BlockKind::Code)) {
            return;
        }
        let mut room = self.options.overlap().min(self.options.size().saturating_sub(more));
        for piece in before.iter().rev() {
            // One for the gap.
            let Some(end) = room.checked_sub(1).and_then(|room| tail(piece, room)) else {
                break;
            };
            room = room.saturating_sub(end.tokens + 1);
            self.repeated.push(end);
            if end.text.len() < piece.text.len() {
                break;
            }
        }
        self.repeated.reverse();
        self.used = cost(&self.repeated);
    }

    /// Ends the current chunk. The tokens of the whole can differ from the sum of its pieces: the excess moves to the next chunk.
    fn close(&mut self) {
        let mut late = Vec::new();
        while let Some((first, last)) = self.own.first().zip(self.own.last()) {
            let overlap = text(&self.repeated, &[]);
            let text = text(&self.repeated, &self.own);
            let found = match sum(&self.repeated, &self.own) {
                Some(sum) => Some(sum).filter(|sum| *sum <= self.options.size()),
                None => tokens::count_up_to(&text, self.options.size()),
            };
            match found {
                None if !self.repeated.is_empty() => {
                    self.repeated.remove(0);
                }
                None if self.own.len() > 1 => late.extend(self.own.pop()),
                _ => {
                    let tokens = found.unwrap_or(self.options.size());
                    let overlap = match overlap.len() {
                        0 => 0,
                        length => length + first.gap.len(),
                    };
                    self.chunks.push(Chunk {
                        overlap,
                        title: self.title.clone(),
                        line: first.line,
                        // Each sheet of a table counts its rows from the first.
                        end_line: last.end_line.max(first.line),
                        tokens: u32::try_from(tokens).unwrap_or(u32::MAX),
                        text,
                    });
                    self.before = std::mem::take(&mut self.own);
                    break;
                }
            }
        }
        self.used = 0;
        self.repeated.clear();
        for piece in late.iter().rev() {
            self.add(std::slice::from_ref(piece));
        }
    }

    fn finish(mut self) -> Vec<Chunk> {
        while !self.own.is_empty() {
            self.close();
        }
        self.chunks
    }
}

/// The tokens of the pieces, if known without counting again.
fn sum(repeated: &[Piece], own: &[Piece]) -> Option<usize> {
    let mut sum: usize = 0;
    let mut before: Option<&Piece> = None;
    for piece in repeated.iter().chain(own) {
        if let Some(before) = before {
            if !piece.gap.starts_with('\n') {
                return None;
            }
            sum = sum.checked_add_signed(tokens::count_break(before.text, piece.gap))?;
        }
        sum += piece.tokens;
        before = Some(piece);
    }
    Some(sum)
}

/// The joined text.
fn text(repeated: &[Piece], own: &[Piece]) -> String {
    let mut text = String::new();
    for piece in repeated.iter().chain(own) {
        if !text.is_empty() {
            text.push_str(piece.gap);
        }
        text.push_str(piece.text);
    }
    text
}

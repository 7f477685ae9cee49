//! The readers of documents, and the chunks of what they read.

use hob_memory::read::{Document, ReadLimits, SourceFile};
use hob_memory::{chunk, tokens, ChunkOptions};

use crate::office::{self, packed};

/// Small limits, so that an input can reach them.
const TEXT_BYTES: usize = 256 << 10;
const PAGES: usize = 50;

/// Longer documents are not cut, because counting their tokens takes most of the time.
const MAX_CHUNKED: usize = 4 << 10;

pub fn pdf(bytes: &[u8]) {
    read("a.pdf", bytes);
}

pub fn docx(bytes: &[u8]) {
    read("a.docx", &packed(&office::DOCX, bytes));
}

pub fn xlsx(bytes: &[u8]) {
    read("a.xlsx", &packed(&office::XLSX, bytes));
}

pub fn pptx(bytes: &[u8]) {
    read("a.pptx", &packed(&office::PPTX, bytes));
}

/// Text and presentations, which are read in the same way.
pub fn odt(bytes: &[u8]) {
    read("a.odt", &packed(&office::OPEN_DOCUMENT, bytes));
}

pub fn ods(bytes: &[u8]) {
    read("a.ods", &packed(&office::OPEN_DOCUMENT, bytes));
}

pub fn mail(bytes: &[u8]) {
    read("a.eml", bytes);
}

pub fn mailbox(bytes: &[u8]) {
    read("a.mbox", bytes);
}

pub fn html(bytes: &[u8]) {
    read("a.html", bytes);
}

pub fn markdown(bytes: &[u8]) {
    read("a.md", bytes);
}

pub fn json(bytes: &[u8]) {
    read("a.json", bytes);
}

pub fn table(bytes: &[u8]) {
    read("a.csv", bytes);
    read("a.tsv", bytes);
}

pub fn code(bytes: &[u8]) {
    read("a.rs", bytes);
}

pub fn plain(bytes: &[u8]) {
    read("a.txt", bytes);
}

/// Reads a file of this name. Its text is limited, and each block has its place in the file.
fn read(name: &str, bytes: &[u8]) {
    let is_pdf = name.ends_with(".pdf");
    if !is_pdf && bytes.starts_with(b"%PDF-") {
        // The content decides, and PDF has a target of its own.
        return;
    }
    let limits = ReadLimits { text_bytes: TEXT_BYTES, pages: PAGES, ..ReadLimits::default() };
    let Ok(document) = SourceFile::received(name, bytes.to_vec()).document(&limits) else { return };
    let text: usize = document.blocks.iter().map(|block| block.text.len()).sum();
    assert!(text <= 2 * TEXT_BYTES, "a document has more text than the limit");
    for block in &document.blocks {
        assert!(1 <= block.line && block.line <= block.end_line, "a block has no place: {block:?}");
        assert!(!block.text.trim().is_empty(), "a block has no text");
    }
    if text <= MAX_CHUNKED {
        check_chunks(&document);
    }
}

/// Chunks have all of the text, and are not longer than asked for.
fn check_chunks(document: &Document) {
    let options = ChunkOptions::new(32, 8).expect("a valid size");
    let chunks = chunk(document, options);
    let own: String = chunks.iter().map(|chunk| letters(&chunk.text[chunk.overlap..])).collect();
    let whole: String = document.blocks.iter().map(|block| letters(&block.text)).collect();
    assert_eq!(own, whole, "chunks lose or repeat text");
    for chunk in &chunks {
        assert!(tokens::count(&chunk.text) <= options.size(), "a chunk is too long");
        assert!(chunk.line <= chunk.end_line, "a chunk has no place");
    }
}

/// Everything that is not blank.
fn letters(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_whitespace()).collect()
}

//! Reads a file that comes with a question: its text, within limits. Knows nothing of the question.

use super::child_process::read_pdf;
use super::{Document, ReadError, ReadLimits, ReaderProcess, SourceFile};

/// Bytes of a file.
pub const MAX_ATTACHMENT_BYTES: usize = 32 << 20;

/// Text of a file: more than any model reads.
const MAX_TEXT_BYTES: usize = 8 << 20;

/// Text of a file that a page attaches to a question.
const MAX_READ_BYTES: usize = 1 << 20;

const MAX_PAGES: usize = 1_000;

/// The text of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileText {
    pub text: String,
    /// Whether the file has more.
    pub is_cut: bool,
}

/// Reads files that come with a question.
#[derive(Clone)]
pub struct AttachmentReader {
    limits: ReadLimits,
}

impl AttachmentReader {
    /// Reads in the process `reader`; `None` reads in this process.
    pub fn new(reader: Option<ReaderProcess>) -> Self {
        AttachmentReader {
            limits: ReadLimits {
                file_bytes: MAX_ATTACHMENT_BYTES as u64,
                text_bytes: MAX_TEXT_BYTES,
                pages: MAX_PAGES,
                reader_process: reader,
                ..ReadLimits::default()
            },
        }
    }

    /// The text of a file, whose name says of what kind it is. Blocks.
    pub fn read(&self, name: &str, bytes: Vec<u8>) -> Result<FileText, ReadError> {
        let (size, limit) = (bytes.len() as u64, self.limits.file_bytes);
        if size > limit {
            return Err(ReadError::TooLarge { bytes: size, limit });
        }
        let mut text = text_of(&SourceFile::received(name, bytes).document(&self.limits)?);
        let is_cut = text.len() > MAX_READ_BYTES;
        if is_cut {
            text.truncate(text.floor_char_boundary(MAX_READ_BYTES));
        }
        Ok(FileText { text, is_cut })
    }

    /// The whole text of a PDF. Blocks.
    pub fn pdf_text(&self, pdf: &[u8]) -> Result<String, ReadError> {
        Ok(text_of(&read_pdf(pdf, &self.limits)?))
    }
}

fn text_of(document: &Document) -> String {
    let blocks: Vec<&str> = document.blocks.iter().map(|block| block.text.as_str()).collect();
    blocks.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters_and_a_large_file_is_refused() {
        let reader = AttachmentReader::new(None);
        let read = |bytes: Vec<u8>| reader.read("notes.txt", bytes);
        let short = FileText { text: "cats purr".to_owned(), is_cut: false };
        assert_eq!(read(b"cats purr".to_vec()).expect("read"), short);
        let long = read(format!("x{}", "é".repeat(MAX_READ_BYTES)).into_bytes()).expect("read");
        assert!(long.is_cut && (MAX_READ_BYTES - 8..=MAX_READ_BYTES).contains(&long.text.len()));
        let refused = read(vec![b'a'; MAX_ATTACHMENT_BYTES + 1]).expect_err("too large");
        assert!(matches!(refused, ReadError::TooLarge { .. }), "{refused}");
    }
}

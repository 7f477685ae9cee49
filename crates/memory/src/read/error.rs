//! Why a file gave no text.

use std::io;

/// Why a file cannot be read. The caller knows its name, so the sentences leave it out: `notes.pdf: the file is …`.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("the file is binary, not text")]
    Binary,
    #[error("the file has {bytes} bytes, and {limit} is the limit")]
    TooLarge { bytes: u64, limit: u64 },
    #[error("the file has more than {limit} bytes of text in it, which is the limit")]
    TooMuchText { limit: usize },
    #[error("the file is named like a key or a password file, and those are never read")]
    Secret,
    #[error("this is {what}, not a file")]
    NotAFile { what: &'static str },
    #[error("the file is broken: {reason}")]
    Broken { reason: String },
    #[error("the file changed while it was read; it is read again next time")]
    Changed,
    #[error("the file cannot be read: {0}")]
    Io(#[from] io::Error),
}

impl ReadError {
    /// Whether nothing is wrong: such files are skipped without a warning.
    pub fn is_expected(&self) -> bool {
        matches!(self, ReadError::Binary | ReadError::Secret | ReadError::NotAFile { .. })
    }
}

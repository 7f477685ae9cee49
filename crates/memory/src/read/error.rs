//! Why a file has no text.

use std::io;

/// Why a file cannot be read. The caller adds its name: `notes.pdf: the file is …`.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("the file is binary, not text")]
    Binary,
    #[error("the file is a picture. Install Tesseract to read the text in it")]
    Picture,
    #[error("the file has {bytes} bytes; the limit is {limit}")]
    TooLarge { bytes: u64, limit: u64 },
    #[error("the file has more text than the limit of {limit} bytes")]
    TooMuchText { limit: usize },
    #[error("the file is in Hob's own directory, which is never read")]
    Private,
    #[error(
        "the file has the name of a key or password file, or is in a directory of them; such files are never read"
    )]
    Secret,
    #[error("this is {what}, not a file")]
    NotAFile { what: &'static str },
    #[error("the file is broken: {reason}")]
    Broken { reason: String },
    #[error("the file changed while it was read; the next run reads it again")]
    Changed,
    #[error("too many files are read at the same time. Try again later")]
    Busy,
    #[error("cannot read the file: {0}")]
    Io(#[from] io::Error),
}

impl ReadError {
    /// Whether this is normal: such files are skipped without a warning.
    pub fn is_expected(&self) -> bool {
        matches!(
            self,
            ReadError::Binary
                | ReadError::Picture
                | ReadError::Private
                | ReadError::Secret
                | ReadError::NotAFile { .. }
        )
    }
}

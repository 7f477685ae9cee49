//! The limits of reading a file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::ocr_program::OcrProgram;

#[derive(Debug, Clone)]
pub struct ReadLimits {
    /// The largest file.
    pub file_bytes: u64,
    /// The most text of a document, and the most unpacked bytes.
    pub text_bytes: usize,
    /// The most pages of a PDF.
    pub pages: usize,
    /// The time limit of the child process.
    pub time: Duration,
    /// The child process for risky formats. Without it, this process reads them.
    pub reader_process: Option<ReaderProcess>,
    /// The directory of uploaded documents, without links. It is in Hob's home, whose other files are secret.
    pub uploads: Option<PathBuf>,
    /// What reads text in scanned pages and pictures.
    pub ocr: Option<Arc<OcrProgram>>,
}

impl ReadLimits {
    /// Whether a file has the name of a secret, or is in a directory of secrets.
    pub fn is_secret(&self, path: &Path) -> bool {
        let uploaded = self.uploads.as_ref().and_then(|uploads| path.strip_prefix(uploads).ok());
        hob_core::is_secret(uploaded.unwrap_or(path))
    }
}

impl Default for ReadLimits {
    fn default() -> Self {
        ReadLimits {
            file_bytes: 64 << 20,
            text_bytes: 64 << 20,
            pages: 5_000,
            time: Duration::from_secs(30),
            reader_process: None,
            uploads: None,
            ocr: None,
        }
    }
}

/// A command that calls `serve`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReaderProcess {
    pub program: PathBuf,
    pub arguments: Vec<String>,
}

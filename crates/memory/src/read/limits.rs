//! The limits of reading a file.

use std::path::PathBuf;
use std::time::Duration;

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
}

impl Default for ReadLimits {
    fn default() -> Self {
        ReadLimits {
            file_bytes: 64 << 20,
            text_bytes: 64 << 20,
            pages: 5_000,
            time: Duration::from_secs(30),
            reader_process: None,
        }
    }
}

/// A command that calls `serve`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReaderProcess {
    pub program: PathBuf,
    pub arguments: Vec<String>,
}

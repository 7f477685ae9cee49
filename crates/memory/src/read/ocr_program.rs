//! Runs Tesseract, which reads text in pictures, if it is installed.
//!
//! It gets only pictures that the reader process has decoded, so it never parses a file of a stranger.

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hob_process::{Need, std_command};

use super::ReadError;
use super::bounded_process::{RunFailure, RunLimits, output_in_turn, output_of};
use super::page_picture::PagePicture;

/// The time limit of one page.
const PAGE_TIME: Duration = Duration::from_secs(60);

/// How long the program may take to say its version.
const VERSION_TIME: Duration = Duration::from_secs(10);

/// Bytes of text of one page.
const MAX_PAGE_TEXT: u64 = 1 << 20;

/// The program that reads text in pictures. Whether it is installed is found out when it is first needed.
#[derive(Debug)]
pub struct OcrProgram {
    program: PathBuf,
    languages: Option<String>,
    is_there: OnceLock<bool>,
}

impl OcrProgram {
    /// Tesseract, found in the search path. `languages` are its names of them, such as `eng+deu`; `None` for its default.
    pub fn tesseract(languages: Option<String>) -> Arc<Self> {
        Self::at("tesseract".into(), languages)
    }

    /// Tesseract at this path.
    pub fn at(program: PathBuf, languages: Option<String>) -> Arc<Self> {
        Arc::new(OcrProgram { program, languages, is_there: OnceLock::new() })
    }

    /// Whether the program can be run.
    pub fn is_installed(&self) -> bool {
        *self.is_there.get_or_init(|| {
            let limits = RunLimits { output: MAX_PAGE_TEXT, time: VERSION_TIME };
            output_of(self.command().arg("--version"), &[], limits).is_ok_and(|said| !said.is_empty())
        })
    }

    fn command(&self) -> Command {
        let mut command = std_command(&self.program, &[Need::Basics]);
        // Several files are read at the same time.
        command.env("OMP_THREAD_LIMIT", "1");
        command
    }

    /// The text of a picture; empty if it has none.
    pub(super) fn text(&self, picture: &PagePicture) -> Result<String, ReadError> {
        let mut command = self.command();
        command.args(["stdin", "stdout"]);
        if let Some(languages) = &self.languages {
            command.args(["-l", languages]);
        }
        let limits = RunLimits { output: MAX_PAGE_TEXT, time: PAGE_TIME };
        match output_in_turn(&mut command, &[&picture.to_pgm()], limits) {
            Ok(text) => Ok(String::from_utf8_lossy(&text).into_owned()),
            Err(RunFailure::Busy) => Err(ReadError::Busy),
            Err(RunFailure::Io(error)) => Err(error.into()),
            Err(RunFailure::TimedOut) => {
                let reason = format!("a page took more than {} seconds", PAGE_TIME.as_secs());
                Err(ReadError::Broken { reason })
            }
        }
    }
}

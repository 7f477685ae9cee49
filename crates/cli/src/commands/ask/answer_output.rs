//! Prints an answer: text on stdout, reasoning on stderr.

use std::io::{self, IsTerminal, Write};

use tokio::io::{AsyncWriteExt, Stdout};

use crate::output;
use crate::output::screen;
use crate::output::style::DIM;
use crate::output::text::printable;

/// Whether the model's reasoning is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReasoningDisplay {
    Hidden,
    Shown,
}

impl From<u8> for ReasoningDisplay {
    /// From the number of `-v`s.
    fn from(verbose: u8) -> Self {
        if verbose == 0 { ReasoningDisplay::Hidden } else { ReasoningDisplay::Shown }
    }
}

pub struct AnswerOutput {
    /// Written without blocking, so that Ctrl-C works while a pipe is full.
    out: Stdout,
    /// Control characters are removed for a terminal. Other programs get the text unchanged.
    is_terminal: bool,
    /// Whether stdout and stderr are the same terminal.
    shares_screen: bool,
    reasoning: ReasoningDisplay,
    /// Whether the current line of stdout has text.
    is_line_open: bool,
    is_thinking: bool,
    /// Whether the answer has any text yet.
    has_words: bool,
}

impl AnswerOutput {
    pub fn new(reasoning: ReasoningDisplay) -> Self {
        AnswerOutput {
            out: tokio::io::stdout(),
            is_terminal: io::stdout().is_terminal(),
            shares_screen: io::stdout().is_terminal() && io::stderr().is_terminal(),
            reasoning,
            is_line_open: false,
            is_thinking: false,
            has_words: false,
        }
    }

    /// Prints a piece of the answer immediately.
    pub async fn write(&mut self, text: &str) -> io::Result<()> {
        if self.is_terminal {
            self.write_rendered(&printable(text)).await
        } else {
            self.write_rendered(text).await
        }
    }

    /// The same for text that is already safe to print, and may have colours.
    pub async fn write_rendered(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.stop_thinking();
        self.has_words |= !text.trim().is_empty();
        self.is_line_open = !text.ends_with('\n');
        // Before the write, because a cancelled write leaves an open line; and after it, in case another line was printed
        // meanwhile.
        self.mark_line();
        self.out.write_all(text.as_bytes()).await?;
        self.out.flush().await?;
        self.mark_line();
        Ok(())
    }

    /// Whether the answer has text other than white space.
    pub fn has_words(&self) -> bool {
        self.has_words
    }

    /// Adds a piece of the model's reasoning.
    pub fn think(&mut self, text: &str) {
        if self.reasoning == ReasoningDisplay::Shown {
            if !std::mem::replace(&mut self.is_thinking, true) {
                let _ = screen::end_line();
            }
            let _ = write!(anstream::stderr(), "{DIM}{}{DIM:#}", printable(text));
            screen::leave_line_open();
        }
    }

    /// Prints a step of an agent on a separate line.
    pub fn step(&mut self, line: &str) {
        if self.reasoning == ReasoningDisplay::Shown {
            self.stop_thinking();
            output::note(line);
        }
    }

    /// Ends the last line.
    pub async fn end(&mut self) -> io::Result<()> {
        self.stop_thinking();
        let is_line_open = std::mem::take(&mut self.is_line_open);
        // If another line was printed meanwhile, the line has already ended.
        if is_line_open && (screen::close_line() || !self.shares_screen) {
            self.out.write_all(b"\n").await?;
        }
        self.out.flush().await
    }

    /// Records whether the line is open, for other writers on the same terminal.
    fn mark_line(&self) {
        if self.shares_screen && self.is_line_open {
            screen::leave_line_open();
        } else if self.shares_screen {
            screen::close_line();
        }
    }

    fn stop_thinking(&mut self) {
        if std::mem::take(&mut self.is_thinking) {
            let _ = screen::end_line();
        }
    }
}

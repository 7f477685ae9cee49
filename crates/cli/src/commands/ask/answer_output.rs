//! What an answer is written on: text on stdout, reasoning on stderr.

use std::io::{self, IsTerminal, Write};

use tokio::io::{AsyncWriteExt, Stdout};

use crate::commands::ask::ReasoningDisplay;
use crate::output;
use crate::output::screen;
use crate::output::style::DIM;
use crate::output::text::printable;

pub struct AnswerOutput {
    /// Written without blocking, so that Ctrl-C works while a pipe is full.
    out: Stdout,
    /// A terminal obeys control characters, so it gets none. Another program gets the text as it is.
    is_terminal: bool,
    /// Whether answer and log are seen on one screen.
    shares_screen: bool,
    reasoning: ReasoningDisplay,
    /// Whether something stands on the current line of stdout.
    is_line_open: bool,
    is_thinking: bool,
    /// Whether anything was answered yet.
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

    /// Adds a piece of the answer, for all to see at once.
    pub async fn write(&mut self, text: &str) -> io::Result<()> {
        if self.is_terminal {
            self.write_rendered(&printable(text)).await
        } else {
            self.write_rendered(text).await
        }
    }

    /// The same with text that was made safe to look at before, and may have colours.
    pub async fn write_rendered(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.stop_thinking();
        self.has_words |= !text.trim().is_empty();
        self.is_line_open = !text.ends_with('\n');
        // Before it is written, because whoever stops this leaves a line behind; and after, in case something was said meanwhile.
        self.tell_screen();
        self.out.write_all(text.as_bytes()).await?;
        self.out.flush().await?;
        self.tell_screen();
        Ok(())
    }

    /// Whether something was answered, more than white space.
    pub fn has_words(&self) -> bool {
        self.has_words
    }

    /// Adds a piece of what the model thinks.
    pub fn think(&mut self, text: &str) {
        if self.reasoning == ReasoningDisplay::Shown {
            if !std::mem::replace(&mut self.is_thinking, true) {
                let _ = screen::end_line();
            }
            let _ = write!(anstream::stderr(), "{DIM}{}{DIM:#}", printable(text));
            screen::leave_line_open();
        }
    }

    /// Tells of something an agent does, on a line of its own.
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
        // Where something else was said meanwhile, the line has ended already.
        if is_line_open && (screen::close_line() || !self.shares_screen) {
            self.out.write_all(b"\n").await?;
        }
        self.out.flush().await
    }

    /// What stands on the line, where others write on the same screen.
    fn tell_screen(&self) {
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

//! What an answer is written on: text on stdout, thoughts on stderr.

use std::io::{self, IsTerminal, Write};

use tokio::io::{AsyncWriteExt, Stdout};

use crate::commands::ask::Thoughts;
use crate::output::style::DIM;
use crate::output::text::printable;

pub struct Paper {
    /// Written without blocking, so that Ctrl-C works while a pipe is full.
    out: Stdout,
    /// A terminal obeys control characters, so it gets none. Another program gets the text as it is.
    is_terminal: bool,
    thoughts: Thoughts,
    /// Whether something stands on the current line of stdout.
    is_line_open: bool,
    is_thinking: bool,
    /// Whether anything was answered yet.
    has_words: bool,
}

impl Paper {
    pub fn new(thoughts: Thoughts) -> Self {
        Paper {
            out: tokio::io::stdout(),
            is_terminal: io::stdout().is_terminal(),
            thoughts,
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
        self.out.write_all(text.as_bytes()).await?;
        self.out.flush().await
    }

    /// Whether something was answered, more than white space.
    pub fn has_words(&self) -> bool {
        self.has_words
    }

    /// Adds a piece of what the model thinks.
    pub fn think(&mut self, text: &str) {
        if self.thoughts == Thoughts::Shown {
            self.is_thinking = true;
            let _ = write!(anstream::stderr(), "{DIM}{}{DIM:#}", printable(text));
        }
    }

    /// Tells of something an agent does, on a line of its own.
    pub fn step(&mut self, line: &str) {
        if self.thoughts == Thoughts::Shown {
            self.stop_thinking();
            let _ = writeln!(anstream::stderr(), "{DIM}{}{DIM:#}", printable(line));
        }
    }

    /// Ends the last line.
    pub async fn end(&mut self) -> io::Result<()> {
        self.stop_thinking();
        if self.is_line_open {
            self.is_line_open = false;
            self.out.write_all(b"\n").await?;
        }
        self.out.flush().await
    }

    fn stop_thinking(&mut self) {
        if std::mem::take(&mut self.is_thinking) {
            let _ = writeln!(anstream::stderr());
        }
    }
}

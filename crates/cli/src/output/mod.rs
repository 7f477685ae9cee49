//! Output: colours and tables on a terminal, plain text in a pipe. Answers go to stdout, everything else to stderr.

pub mod download;
pub mod markdown;
pub mod number;
pub mod progress;
pub mod qr;
pub mod question;
pub mod screen;
pub mod secret_line;
pub mod style;
pub mod table;
pub mod text;
pub mod time;

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use anstyle::Style;
use serde::Serialize;

use crate::output::style::{DIM, WARNING};
use crate::output::text::{printable, printable_json, wrapped};

/// Whether a command prints text for people or JSON for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputFormat {
    Text,
    Json,
}

impl From<bool> for OutputFormat {
    /// From the flag `--json`.
    fn from(json: bool) -> Self {
        if json { OutputFormat::Json } else { OutputFormat::Text }
    }
}

/// Prints a line on stdout, without colours if stdout does not support them.
pub fn line(text: impl Display) -> io::Result<()> {
    writeln!(anstream::stdout(), "{text}")
}

/// Prints a warning on stderr.
pub fn warning(text: impl Display) {
    labelled_line("warning:", WARNING, text);
}

/// Prints a note on stderr.
pub fn note(text: impl Display) {
    stderr_line(format_args!("{DIM}{}{DIM:#}", fitted(&text.to_string())));
}

/// Prints a line on stderr that starts with a highlighted label.
pub fn labelled_line(label: &str, style: Style, text: impl Display) {
    let line = fitted(&format!("{label} {text}"));
    stderr_line(format_args!("{style}{label}{style:#}{}", &line[label.len()..]));
}

/// The text without control characters, wrapped between words on a terminal.
fn fitted(text: &str) -> String {
    let text = printable(text);
    match screen::width() {
        Some(width) => wrapped(&text, usize::from(width), 0),
        None => text.into_owned(),
    }
}

/// Prints a line on stderr. Errors are ignored: a closed stderr is no reason to stop.
pub fn stderr_line(text: impl Display) {
    let _ = screen::write(&format!("{text}\n"));
}

/// Prints a value as JSON: on one line, or indented on a terminal.
pub fn json(value: &impl Serialize) -> io::Result<()> {
    let text = if io::stdout().is_terminal() {
        serde_json::to_string_pretty(value).map(|text| printable_json(&text))
    } else {
        serde_json::to_string(value)
    };
    writeln!(io::stdout(), "{}", text.map_err(io::Error::other)?)
}

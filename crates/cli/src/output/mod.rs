//! How things look: on a terminal with colour and tables, plain when piped. stdout has the answers, stderr the rest.

pub mod download;
pub mod markdown;
pub mod number;
pub mod progress;
pub mod screen;
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

/// A line on stdout. Colours in it are taken out where they do not belong.
pub fn line(text: impl Display) -> io::Result<()> {
    writeln!(anstream::stdout(), "{text}")
}

/// Something the user should know, on stderr.
pub fn warning(text: impl Display) {
    labelled_line("warning:", WARNING, text);
}

/// Something that may be of use, on stderr.
pub fn note(text: impl Display) {
    stderr_line(format_args!("{DIM}{}{DIM:#}", fitted(&text.to_string())));
}

/// A line on stderr that begins with a word that stands out.
pub fn labelled_line(label: &str, style: Style, text: impl Display) {
    let line = fitted(&format!("{label} {text}"));
    stderr_line(format_args!("{style}{label}{style:#}{}", &line[label.len()..]));
}

/// Safe to look at, and on a terminal broken between words rather than wherever its width ends.
fn fitted(text: &str) -> String {
    let text = printable(text);
    match screen::width() {
        Some(width) => wrapped(&text, usize::from(width), 0),
        None => text.into_owned(),
    }
}

/// A line on stderr. When nobody hears it, that is no reason to stop.
pub fn stderr_line(text: impl Display) {
    let _ = screen::write(&format!("{text}\n"));
}

/// A value for another program: on one line, or indented where a person looks.
pub fn json(value: &impl Serialize) -> io::Result<()> {
    let text = if io::stdout().is_terminal() {
        serde_json::to_string_pretty(value).map(|text| printable_json(&text))
    } else {
        serde_json::to_string(value)
    };
    writeln!(io::stdout(), "{}", text.map_err(io::Error::other)?)
}

//! What was found, and how it looks.

use std::io;

use serde::Serialize;

use crate::output;
use crate::output::style::{BAD, DIM, GOOD, NAME, STRONG, WARNING};
use crate::output::text::{one_line, printable};

/// How something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Good,
    /// Not there, and not needed.
    Off,
    /// It works, but not as it should.
    Warning,
    Bad,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    pub name: String,
    pub status: Status,
    pub message: String,
    /// What to do about it.
    pub advice: Option<String>,
}

impl Check {
    pub fn new(name: impl Into<String>, status: Status, message: impl Into<String>) -> Self {
        Check { name: name.into(), status, message: message.into(), advice: None }
    }

    pub fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }
}

/// Everything that was looked at.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Whether a question can be answered.
    #[serde(rename = "ok")]
    pub can_answer: bool,
    pub checks: Vec<Check>,
}

impl Report {
    pub fn print_json(&self) -> io::Result<()> {
        output::json(self)
    }

    pub fn print(&self) -> io::Result<()> {
        let width = self.checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
        for Check { name, status, message, advice } in &self.checks {
            let (style, mark) = match status {
                Status::Good => (GOOD, '✓'),
                Status::Off => (DIM, '·'),
                Status::Warning => (WARNING, '!'),
                Status::Bad => (BAD, '✗'),
            };
            let indent = width + 4;
            let message = printable(message).trim().replace('\n', &format!("\n{:indent$}", ""));
            if *status == Status::Off {
                output::line(format_args!("{DIM}{mark} {name:width$}  {message}{DIM:#}"))?;
            } else {
                output::line(format_args!("{style}{mark}{style:#} {NAME}{name:width$}{NAME:#}  {message}"))?;
            }
            if let Some(advice) = advice {
                output::line(format_args!("{:indent$}{DIM}→ {}{DIM:#}", "", one_line(advice)))?;
            }
        }
        let verdict = if self.can_answer {
            format!("\n{GOOD}Ready.{GOOD:#} Try it: hob ask 'Hello'")
        } else {
            format!("\n{STRONG}Not ready:{STRONG:#} see the lines with {BAD}✗{BAD:#}.")
        };
        output::line(verdict)
    }
}

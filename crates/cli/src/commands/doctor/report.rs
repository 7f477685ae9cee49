//! The result of the checks, the next step, and how they are printed.

use std::io;

use serde::Serialize;

use crate::output;
use crate::output::style::{BAD, DIM, GOOD, NAME, STRONG, WARNING};
use crate::output::text::{one_line, printable};

/// The suggestion when everything works.
const TRY_IT: &str = "hob ask 'Hello'";

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckStatus {
    Good,
    /// Not available, and not needed.
    Off,
    /// It works, but not as it should.
    Warning,
    Bad,
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DoctorCheck {
    pub name: String,
    pub status: CheckStatus,
    pub message: String,
    /// What to do about it.
    pub advice: Option<String>,
}

impl DoctorCheck {
    pub fn new(name: impl Into<String>, status: CheckStatus, message: impl Into<String>) -> Self {
        DoctorCheck { name: name.into(), status, message: message.into(), advice: None }
    }

    pub fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }
}

/// All checks.
#[derive(Debug, Serialize)]
pub struct DoctorReport {
    /// Whether a question can be answered, and the configuration is good enough for a server.
    #[serde(rename = "ok")]
    is_ready: bool,
    /// The one thing to do next.
    next: String,
    /// The check that the next step belongs to.
    #[serde(skip)]
    about: Option<String>,
    checks: Vec<DoctorCheck>,
}

impl DoctorReport {
    pub fn new(is_ready: bool, checks: Vec<DoctorCheck>) -> Self {
        let (about, next) = match next_step(&checks) {
            Some((about, advice)) => (Some(about.to_owned()), advice.to_owned()),
            None => (None, TRY_IT.to_owned()),
        };
        DoctorReport { is_ready, next, about, checks }
    }

    pub fn is_ready(&self) -> bool {
        self.is_ready
    }

    pub fn print_json(&self) -> io::Result<()> {
        output::json(self)
    }

    pub fn print(&self) -> io::Result<()> {
        let width = self.checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
        for DoctorCheck { name, status, message, advice } in &self.checks {
            let (style, mark) = match status {
                CheckStatus::Good => (GOOD, '✓'),
                CheckStatus::Off => (DIM, '·'),
                CheckStatus::Warning => (WARNING, '!'),
                CheckStatus::Bad => (BAD, '✗'),
            };
            let indent = width + 4;
            let message = printable(message).trim().replace('\n', &format!("\n{:indent$}", ""));
            if *status == CheckStatus::Off {
                output::line(format_args!("{DIM}{mark} {name:width$}  {message}{DIM:#}"))?;
            } else {
                output::line(format_args!("{style}{mark}{style:#} {NAME}{name:width$}{NAME:#}  {message}"))?;
            }
            if let Some(advice) = advice {
                output::line(format_args!("{:indent$}{DIM}→ {}{DIM:#}", "", one_line(advice)))?;
            }
        }
        output::line("")?;
        let about = self.about.as_deref().map(|about| format!(" ({about})")).unwrap_or_default();
        match self.verdict() {
            DoctorVerdict::Ready => output::line(format_args!("{GOOD}Ready.{GOOD:#} Try it: {TRY_IT}")),
            DoctorVerdict::ReadyBut => {
                output::line(format_args!("{GOOD}Ready.{GOOD:#} Try it: {TRY_IT}"))?;
                output::line(format_args!("{STRONG}Then{about}:{STRONG:#} {}", one_line(&self.next)))
            }
            DoctorVerdict::NotReady => output::line(format_args!(
                "{BAD}Not ready.{BAD:#} {STRONG}Next{about}:{STRONG:#} {}",
                one_line(&self.next)
            )),
        }
    }

    fn verdict(&self) -> DoctorVerdict {
        if !self.is_ready {
            DoctorVerdict::NotReady
        } else if self.about.is_none() {
            DoctorVerdict::Ready
        } else {
            DoctorVerdict::ReadyBut
        }
    }
}

enum DoctorVerdict {
    Ready,
    /// A question can be answered, and something is still wrong.
    ReadyBut,
    NotReady,
}

/// The hint of the worst check; among equals the first, because later checks depend on earlier ones.
fn next_step(checks: &[DoctorCheck]) -> Option<(&str, &str)> {
    let first = |status| {
        let mut such = checks.iter().filter(move |check| check.status == status);
        such.find_map(|check| Some((check.name.as_str(), check.advice.as_deref()?)))
    };
    first(CheckStatus::Bad).or_else(|| first(CheckStatus::Warning))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(status: CheckStatus, advice: &str) -> DoctorCheck {
        DoctorCheck::new("x", status, "m").advise(advice)
    }

    #[test]
    fn the_worst_comes_first_and_of_equals_the_first() {
        let (good, warning) = (check(CheckStatus::Good, "nothing"), check(CheckStatus::Warning, "tidy up"));
        let (bad, worse) = (check(CheckStatus::Bad, "mend"), check(CheckStatus::Bad, "mend too"));
        assert_eq!(next_step(std::slice::from_ref(&good)), None);
        assert_eq!(DoctorReport::new(true, vec![good.clone()]).next, TRY_IT);
        assert_eq!(next_step(&[good.clone(), warning.clone()]), Some(("x", "tidy up")));
        assert_eq!(next_step(&[good, warning, bad, worse]), Some(("x", "mend")));
    }
}

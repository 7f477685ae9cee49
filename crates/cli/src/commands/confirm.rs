//! Asks the user for confirmation before a deletion.

use std::io::{self, IsTerminal, Write};

use anyhow::{Context, Result, bail};

/// Whether the user must confirm first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirmation {
    Ask,
    Given,
}

impl From<bool> for Confirmation {
    /// From the flag `--yes`.
    fn from(yes: bool) -> Self {
        if yes { Confirmation::Given } else { Confirmation::Ask }
    }
}

impl Confirmation {
    /// Asks if necessary. `what` completes "this deletes …". Without a terminal to ask on, this is an error.
    pub fn is_given(self, what: &str) -> Result<bool> {
        if self == Confirmation::Given {
            return Ok(true);
        }
        if !io::stdin().is_terminal() {
            bail!("this deletes {what}. Use -y to confirm.");
        }
        write!(anstream::stderr(), "Delete {what}? [y/N] ")?;
        let mut answer = String::new();
        io::stdin().read_line(&mut answer).context("cannot read the answer")?;
        Ok(is_yes(&answer))
    }
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_deletes() {
        for yes in ["y\n", "Y", " yes \n"] {
            assert!(is_yes(yes), "{yes:?}");
        }
        for no in ["", "\n", "n\n", "yikes\n", "no y"] {
            assert!(!is_yes(no), "{no:?}");
        }
    }
}

//! Whether the user means it.

use std::io::{self, IsTerminal, Write};

use anyhow::{Context, Result, bail};

/// Whether the user has to agree first.
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
    /// Asks where that is necessary. `what` completes "this deletes …"; where nobody can be asked, that is an error.
    pub fn is_given(self, what: &str) -> Result<bool> {
        if self == Confirmation::Given {
            return Ok(true);
        }
        if !io::stdin().is_terminal() {
            bail!("this deletes {what}. Say -y if that is what you want.");
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

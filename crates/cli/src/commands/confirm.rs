//! Asks the user for confirmation before a deletion.

use std::io::{self, IsTerminal};

use anyhow::{Result, bail};

use crate::output::question::yes_or_no;

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
        yes_or_no(&format!("Delete {what}?"))
    }
}

//! Questions that the user answers on the terminal.

use std::io::{self, BufRead, IsTerminal, Read, Write};

use anyhow::{Context, Result, ensure};

use crate::output::screen;

/// The longest line that is read, in bytes.
const MAX_LINE_BYTES: u64 = 4_096;

/// Whether a user can answer a question: input and errors are a terminal.
pub fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks on stderr; anything but a clear yes is no. Progress bars are hidden meanwhile.
pub fn yes_or_no(question: &str) -> Result<bool> {
    screen::without_bars(|| {
        write!(anstream::stderr(), "{question} [y/N] ")?;
        let mut answer = String::new();
        io::stdin().read_line(&mut answer).context("cannot read the answer")?;
        Ok(is_yes(&answer))
    })
}

/// Asks for a line of text on stderr. An empty answer is the default.
pub fn text(question: &str, default: &str) -> Result<String> {
    screen::without_bars(|| {
        let usual = if default.is_empty() { String::new() } else { format!(" [{default}]") };
        write!(anstream::stderr(), "{question}{usual}: ")?;
        let mut answer = String::new();
        let length = io::stdin().read_line(&mut answer).context("cannot read the answer")?;
        // The end of the input is no answer.
        ensure!(length > 0, "the input ended before all questions were answered.");
        Ok(match answer.trim() {
            "" => default.to_owned(),
            answer => answer.to_owned(),
        })
    })
}

/// Asks for a line on stderr. An empty answer is `likely`.
pub async fn text_line(question: &str, likely: &str) -> Result<String> {
    match likely {
        "" => write!(anstream::stderr(), "{question}: ")?,
        likely => write!(anstream::stderr(), "{question} [{likely}]: ")?,
    }
    // On a thread, so that Ctrl-C is noticed.
    let line = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        io::stdin().lock().take(MAX_LINE_BYTES).read_line(&mut line).map(|_| line)
    });
    let line = line.await?.context("cannot read the answer")?;
    Ok(if line.trim().is_empty() { likely.to_owned() } else { line.trim().to_owned() })
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_is_a_yes() {
        for yes in ["y\n", "Y", " yes \n"] {
            assert!(is_yes(yes), "{yes:?}");
        }
        for no in ["", "\n", "n\n", "yikes\n", "no y"] {
            assert!(!is_yes(no), "{no:?}");
        }
    }
}

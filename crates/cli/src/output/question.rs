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
        Ok(is_yes(&read_line().context("cannot read the answer")?))
    })
}

/// Asks for a line of text on stderr. An empty answer is the default. Progress bars are hidden meanwhile.
pub async fn text(question: &str, default: &str) -> Result<String> {
    let usual = if default.is_empty() { String::new() } else { format!(" [{default}]") };
    let shown = format!("{question}{usual}: ");
    let asking = move || {
        screen::without_bars(|| {
            write!(anstream::stderr(), "{shown}")?;
            read_line()
        })
    };
    // On a thread, so that Ctrl-C is noticed.
    let line = tokio::task::spawn_blocking(asking).await?.context("cannot read the answer")?;
    // The end of the input is no answer.
    ensure!(!line.is_empty(), "the input ended before all questions were answered.");
    Ok(match line.trim() {
        "" => default.to_owned(),
        answer => answer.to_owned(),
    })
}

/// The next line of stdin with its end; empty at the end of the input. Blocks.
pub fn read_line() -> io::Result<String> {
    let mut line = String::new();
    io::stdin().lock().take(MAX_LINE_BYTES).read_line(&mut line)?;
    Ok(line)
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

//! The question: from the command line, from stdin, or from both.

use std::io::{self, IsTerminal, Read};

use anyhow::{Context, Result, bail};

/// More text than any model can read.
const LARGEST: usize = 10 << 20;

/// Reads the question, which is given as words. May wait for stdin.
pub fn read(words: &[String]) -> Result<String> {
    let query = (!words.is_empty()).then(|| words.join(" "));
    let query = query.as_deref();
    let piped = match query {
        Some("-") => read_all(io::stdin().lock(), LARGEST)?,
        None if io::stdin().is_terminal() => {
            bail!("no question given. For example: hob ask 'Why is the sky blue?'. Or pipe it in.")
        }
        None => read_all(io::stdin().lock(), LARGEST)?,
        Some(_) if is_piped() => read_all(io::stdin().lock(), LARGEST)?,
        Some(_) => String::new(),
    };
    let asked = query.filter(|query| *query != "-").unwrap_or_default();
    let question = join(asked, &piped);
    if question.is_empty() {
        bail!("the question is empty.");
    }
    Ok(question)
}

/// Whether stdin has text in addition to the question. A stdin such as `/dev/null`, from a service manager or a test, is
/// neither a pipe nor a file.
#[cfg(unix)]
fn is_piped() -> bool {
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileTypeExt;
    let stdin = io::stdin().as_fd().try_clone_to_owned().map(std::fs::File::from);
    let kind = stdin.and_then(|file| file.metadata()).map(|metadata| metadata.file_type());
    kind.is_ok_and(|kind| kind.is_fifo() || kind.is_file())
}

#[cfg(not(unix))]
fn is_piped() -> bool {
    !io::stdin().is_terminal()
}

fn read_all(input: impl Read, limit: usize) -> Result<String> {
    let mut bytes = Vec::new();
    input.take(limit as u64 + 1).read_to_end(&mut bytes).context("cannot read stdin")?;
    if bytes.len() > limit {
        bail!("the piped input is larger than {} MiB, which no model can read.", limit >> 20);
    }
    String::from_utf8(bytes).ok().context("the piped input is not UTF-8 text.")
}

/// The question, and below it the text it is about.
fn join(asked: &str, piped: &str) -> String {
    match (asked.trim(), piped.trim()) {
        ("", piped) => piped.to_owned(),
        (asked, "") => asked.to_owned(),
        (asked, piped) => format!("{asked}\n\n{piped}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn piped_text_follows_the_question() {
        assert_eq!(join("Why?", " a text\n"), "Why?\n\na text");
        assert_eq!(join("Why?", "\n"), "Why?");
        assert_eq!(join("", "Why?\n"), "Why?");
        assert_eq!(join(" ", ""), "");
    }

    #[test]
    fn stdin_has_a_limit_and_is_text() {
        assert_eq!(read_all(&b"1234"[..], 4).ok().as_deref(), Some("1234"));
        assert!(read_all(&b"12345"[..], 4).is_err());
        assert!(read_all(io::repeat(b'x'), 4).is_err(), "an endless stdin ends too");
        assert!(read_all(&b"\xff"[..], 4).is_err());
    }
}

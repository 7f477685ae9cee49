//! Copies text to the clipboard: by the terminal itself (OSC 52, which also works over SSH), and by a program of the desktop if there is one.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hob_process::{Need, command};
use tokio::io::AsyncWriteExt;

/// Terminals ignore longer texts.
const LONGEST_SEQUENCE: usize = 100_000;

/// The time limit for a program. Those of X11 continue in the background, and close their input first.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Programs, their arguments, and the variable without which they do not work.
const PROGRAMS: [(&str, &[&str], Option<&str>); 4] = [
    ("wl-copy", &[], Some("WAYLAND_DISPLAY")),
    ("xclip", &["-selection", "clipboard"], Some("DISPLAY")),
    ("xsel", &["--clipboard", "--input"], Some("DISPLAY")),
    ("pbcopy", &[], None),
];

/// Variables that the programs need.
const VARIABLES: [&str; 4] = ["WAYLAND_DISPLAY", "DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR"];

/// Copies the text. It is an error if there is no way to do so.
pub async fn copy(text: &str) -> Result<()> {
    let sequence = sequence(text).filter(|_| io::stderr().is_terminal());
    if let Some(sequence) = &sequence {
        io::stderr().write_all(sequence.as_bytes()).context("cannot write to the terminal")?;
    }
    let mut is_copied = sequence.is_some();
    for (program, arguments, needed) in PROGRAMS {
        let is_usable = needed.is_none_or(|variable| env::var_os(variable).is_some());
        if is_usable && run(program, arguments, text).await.is_ok() {
            is_copied = true;
            break;
        }
    }
    if !is_copied {
        bail!(
            "the answer is too long for the terminal's clipboard, and no wl-copy, xclip, xsel or pbcopy works. Use /save."
        );
    }
    Ok(())
}

/// What makes the terminal copy the text; `None` if it is too long.
fn sequence(text: &str) -> Option<String> {
    let encoded = BASE64_STANDARD.encode(text);
    (encoded.len() <= LONGEST_SEQUENCE).then(|| format!("\x1b]52;c;{encoded}\x07"))
}

async fn run(program: &str, arguments: &[&str], text: &str) -> io::Result<()> {
    let mut command = command(program, &[Need::Basics]);
    let variables = VARIABLES.iter().filter_map(|name| Some((name, env::var_os(name)?)));
    command
        .args(arguments)
        .envs(variables)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let mut child = command.spawn()?;
    let work = async {
        if let Some(mut input) = child.stdin.take() {
            input.write_all(text.as_bytes()).await?;
        }
        child.wait().await
    };
    match tokio::time::timeout(TIMEOUT, work).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(io::Error::other(status.to_string())),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_terminal_gets_short_texts() {
        assert_eq!(sequence("Paris.").as_deref(), Some("\x1b]52;c;UGFyaXMu\x07"));
        assert_eq!(sequence(&"x".repeat(LONGEST_SEQUENCE)), None);
    }
}

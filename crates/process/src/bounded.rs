//! Runs a program to its end, and reads a limited part of what it prints.

use std::io;
use std::process::{ExitStatus, Stdio};

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

/// How a program ended, and the beginning of what it printed.
#[derive(Debug)]
pub struct BoundedOutput {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

/// Runs a program without input, and reads at most this many bytes of each output. Dropping the future kills the program.
pub async fn bounded_output(command: &mut Command, most_bytes: u64) -> io::Result<BoundedOutput> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn()?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (stdout, stderr) = tokio::try_join!(beginning(stdout, most_bytes), beginning(stderr, most_bytes))?;
    Ok(BoundedOutput { status: child.wait().await?, stdout, stderr })
}

/// Closes the pipe after the last byte that is read, which ends a program that prints without end.
async fn beginning(pipe: Option<impl AsyncRead + Unpin>, most_bytes: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        pipe.take(most_bytes).read_to_end(&mut bytes).await?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::{Need, command};

    #[tokio::test]
    async fn both_outputs_and_the_status_are_known() {
        let mut program = command("sh", &[Need::Basics]);
        let ended =
            bounded_output(program.args(["-c", "echo out; echo err >&2; exit 5"]), 100).await.unwrap();
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("out\n", "err\n"));
        assert_eq!(ended.status.code(), Some(5));
    }

    #[tokio::test]
    async fn a_program_that_prints_without_end_is_cut_off() {
        let mut program = command("sh", &[Need::Basics]);
        let ended = bounded_output(program.args(["-c", "exec yes"]), 1_000).await.unwrap();
        assert_eq!(ended.stdout.len(), 1_000);
        assert!(!ended.status.success());
    }

    #[tokio::test]
    async fn a_missing_program_is_not_found() {
        let mut program = command("hob-no-such-program", &[Need::Basics]);
        let error = bounded_output(&mut program, 100).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}

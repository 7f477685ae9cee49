//! Runs a short command with a time limit, to check a runtime.

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use crate::error::SandboxError;
use crate::filter_pipe::SandboxCommand;

/// A daemon that does not answer in this time counts as missing.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Runs `command`. `program` is named in errors.
pub async fn run_probe(command: impl Into<SandboxCommand>, program: &Path) -> Result<Output, SandboxError> {
    let mut command = command.into();
    let streams = command.command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    streams.kill_on_drop(true);
    let answer = async { command.spawn()?.wait_with_output().await };
    match tokio::time::timeout(TIMEOUT, answer).await {
        Ok(Ok(output)) => Ok(output),
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(SandboxError::RuntimeMissing { program: program.to_owned() })
        }
        Ok(Err(source)) => Err(SandboxError::Io { program: program.to_owned(), source }),
        Err(_) => Err(SandboxError::Unusable {
            program: program.to_owned(),
            reason: format!("it did not answer within {} s", TIMEOUT.as_secs()),
        }),
    }
}

/// The last line of stderr, which usually has the error.
pub fn last_error_line(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let last = stderr.lines().rev().find(|line| !line.trim().is_empty());
    last.map_or_else(|| output.status.to_string(), |line| line.trim().chars().take(300).collect())
}

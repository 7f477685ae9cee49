//! Runs another program with limits on its time and output.

use std::future::Future;
use std::io::ErrorKind;
use std::time::Duration;

use hob_process::{Need, bounded_output, command};
use thiserror::Error;

use crate::hardware::format::printable;

/// How long a probe may take. A broken driver can block its tools forever.
pub(super) const TIMEOUT: Duration = Duration::from_secs(3);

/// The part of a program's output that is read.
const MOST_OUTPUT: u64 = 1024 * 1024;

/// The part of an error message that is repeated.
const MOST_COMPLAINT: usize = 200;

/// Why a program that is installed did not answer.
#[derive(Debug, Error, PartialEq, Eq)]
pub(super) enum ProbeError {
    #[error("{program} did not answer within {} s", TIMEOUT.as_secs())]
    Timeout { program: String },
    #[error("{program} failed: {complaint}")]
    Failed { program: String, complaint: String },
}

/// What the program prints; `None` when it is not installed.
pub(super) async fn ask(program: &str, arguments: &[&str]) -> Result<Option<String>, ProbeError> {
    ask_until(program, arguments, tokio::time::sleep(TIMEOUT)).await
}

/// As [`ask`], until `deadline` is ready.
async fn ask_until(
    program: &str,
    arguments: &[&str],
    deadline: impl Future<Output = ()>,
) -> Result<Option<String>, ProbeError> {
    let failed = |complaint: String| ProbeError::Failed { program: program.to_owned(), complaint };
    let mut command = command(program, &[Need::Basics, Need::Compute]);
    tokio::select! {
        ended = bounded_output(command.args(arguments), MOST_OUTPUT) => match ended {
            Ok(ended) if ended.status.success() => Ok(Some(ended.stdout)),
            Ok(ended) => Err(failed(complaint(&ended.stderr, &ended.stdout))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(error.to_string())),
        },
        // The program is killed and not waited for: a process stuck in a driver dies late.
        () = deadline => Err(ProbeError::Timeout { program: program.to_owned() }),
    }
}

/// The first line with text; drivers' tools print errors on either output.
fn complaint(errors: &str, output: &str) -> String {
    let first = errors.lines().chain(output.lines()).map(str::trim).find(|line| !line.is_empty());
    printable(&first.unwrap_or("no reason given").chars().take(MOST_COMPLAINT).collect::<String>())
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    /// As [`ask`], without its time limit: a busy machine may take longer to start a program.
    async fn ask_patiently(program: &str, arguments: &[&str]) -> Result<Option<String>, ProbeError> {
        ask_until(program, arguments, std::future::pending()).await
    }

    #[tokio::test]
    async fn a_program_that_is_not_installed_is_no_trouble() {
        assert_eq!(ask("hob-no-such-program", &[]).await, Ok(None));
    }

    #[tokio::test]
    async fn a_program_that_fails_is_quoted() {
        let failure =
            ask_patiently("sh", &["-c", "echo; echo '  the driver is gone'; echo more; exit 9"]).await;
        let expected = ProbeError::Failed { program: "sh".into(), complaint: "the driver is gone".into() };
        assert_eq!(failure, Err(expected));
        let silent = ask_patiently("sh", &["-c", "exit 1"]).await.map_err(|error| error.to_string());
        assert_eq!(silent, Err("sh failed: no reason given".to_owned()));
    }

    #[tokio::test]
    async fn a_program_that_talks_without_end_is_cut_off() {
        let failure = ask_patiently("sh", &["-c", "exec yes"]).await;
        assert!(matches!(failure, Err(ProbeError::Failed { .. })), "{failure:?}");
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_program_that_hangs_is_killed() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("pid");
        let script = format!("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 600", file.display());
        let until = |ready: fn(&std::path::Path) -> bool, path: std::path::PathBuf| async move {
            while !ready(&path) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let started = until(|path| path.exists(), file.clone());
        let failure = ask_until("sh", &["-c", &script], started).await;
        assert_eq!(failure, Err(ProbeError::Timeout { program: "sh".into() }));
        let pid = std::fs::read_to_string(&file).expect("it had started");
        let process = std::path::PathBuf::from(format!("/proc/{}", pid.trim()));
        let gone = until(|path| !path.exists(), process);
        tokio::time::timeout(Duration::from_secs(20), gone).await.expect("the process is gone");
    }
}

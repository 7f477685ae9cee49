//! A program that runs beside Hob: its start, its output, and its end together with everything that it started.

use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use thiserror::Error;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::{OutputTail, ProcessGroup, drain, lead_a_group};

/// The output of a dead process closes at once, unless a process outside its group still holds it open.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Why a program does not start.
#[derive(Debug, Error)]
pub enum ChildStartError {
    #[error("program '{}' not found (for a script, its interpreter may be missing)", program.display())]
    Missing { program: PathBuf },

    #[error("cannot run '{}': permission denied. Is it executable?", program.display())]
    NotExecutable { program: PathBuf },

    #[error("cannot start '{}'", program.display())]
    Failed { program: PathBuf, source: io::Error },
}

/// How long a program may take to stop.
#[derive(Debug, Clone, Copy)]
pub struct StopTimeouts {
    /// After its stdin was closed.
    pub after_eof: Duration,
    pub after_sigterm: Duration,
}

/// A running program. Dropping it kills the program and everything that it started.
#[derive(Debug)]
pub struct ChildProcess {
    child: Child,
    pid: u32,
    group: ProcessGroup,
    stderr: OutputTail,
    drains: JoinSet<()>,
}

impl ChildProcess {
    /// Starts a program without stdin. `log` gets every line of its output; `stderr` keeps the last lines of stderr.
    pub fn spawn(
        mut command: Command,
        stderr: OutputTail,
        log: impl Fn(&str) + Clone + Send + 'static,
    ) -> Result<Self, ChildStartError> {
        command.stdin(Stdio::null());
        let mut process = Self::start(command, stderr, log.clone())?;
        if let Some(stdout) = process.child.stdout.take() {
            process.drains.spawn(drain(stdout, OutputTail::keeping(1), log));
        }
        Ok(process)
    }

    /// Starts a program that the caller talks to. `log` gets every line of stderr; `stderr` keeps the last ones.
    pub fn spawn_piped(
        mut command: Command,
        stderr: OutputTail,
        log: impl Fn(&str) + Send + 'static,
    ) -> Result<(Self, ChildStdin, ChildStdout), ChildStartError> {
        command.stdin(Stdio::piped());
        let program = PathBuf::from(command.as_std().get_program());
        let mut process = Self::start(command, stderr, log)?;
        match (process.child.stdin.take(), process.child.stdout.take()) {
            (Some(stdin), Some(stdout)) => Ok((process, stdin, stdout)),
            _ => Err(ChildStartError::Failed {
                program,
                source: io::Error::other("it has no stdin or stdout"),
            }),
        }
    }

    fn start(
        mut command: Command,
        stderr: OutputTail,
        log: impl Fn(&str) + Send + 'static,
    ) -> Result<Self, ChildStartError> {
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        lead_a_group(&mut command);
        let mut child = command.spawn().map_err(|source| {
            let program = PathBuf::from(command.as_std().get_program());
            match source.kind() {
                io::ErrorKind::NotFound => ChildStartError::Missing { program },
                io::ErrorKind::PermissionDenied => ChildStartError::NotExecutable { program },
                _ => ChildStartError::Failed { program, source },
            }
        })?;
        let mut drains = JoinSet::new();
        if let Some(stream) = child.stderr.take() {
            drains.spawn(drain(stream, stderr.clone(), log));
        }
        let (pid, group) = (child.id().unwrap_or_default(), ProcessGroup::led_by(child.id()));
        Ok(ChildProcess { child, pid, group, stderr, drains })
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The last lines of stderr.
    pub fn last_lines(&self) -> String {
        self.stderr.joined("\n")
    }

    /// Waits until the program has ended and its output is read.
    pub async fn ended(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        self.group.kill();
        self.drained().await;
        Ok(status)
    }

    /// Waits for the program to end after its stdin was closed, then sends it SIGTERM, then kills it.
    pub async fn stop(&mut self, timeouts: StopTimeouts) {
        if timeout(timeouts.after_eof, self.child.wait()).await.is_err() {
            self.group.terminate();
            if timeout(timeouts.after_sigterm, self.child.wait()).await.is_err() {
                tracing::warn!(pid = self.pid, "a process did not stop in time; Hob kills it");
            }
        }
        self.group.kill();
        if let Err(error) = self.child.kill().await {
            tracing::warn!(pid = self.pid, %error, "a process cannot be killed. Stop it by its pid");
        }
        self.drained().await;
    }

    /// Waits until no process holds the output open: the child, and everything that it started.
    async fn drained(&mut self) {
        let closed = async { while self.drains.join_next().await.is_some() {} };
        if timeout(CLOSE_TIMEOUT, closed).await.is_err() {
            tracing::debug!(
                pid = self.pid,
                "another process still holds the output of an ended process open"
            );
        }
    }
}

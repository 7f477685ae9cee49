//! An MCP server that runs as a child process.

use std::path::Path;
use std::time::Duration;

use hob_process::{ChildProcess, Need, OutputTail, StopTimeouts, command};
use secrecy::{ExposeSecret, SecretString};
use tokio::process::{ChildStdin, ChildStdout};

use crate::McpError;

/// Closing its stdin asks a server to end. Most do.
const STOP_TIMEOUTS: StopTimeouts =
    StopTimeouts { after_eof: Duration::from_secs(1), after_sigterm: Duration::from_secs(2) };

/// The number of stderr lines in an error.
const KEPT_LINES: usize = 5;

/// The command of a server.
pub struct ServerCommand<'a> {
    pub command: &'a Path,
    pub args: &'a [String],
    pub env: &'a [(String, SecretString)],
    pub cwd: Option<&'a Path>,
}

/// A running server. Dropping it kills it and everything that it started.
pub struct ServerProcess(ChildProcess);

impl ServerProcess {
    pub fn spawn(
        server: &str,
        program: ServerCommand<'_>,
    ) -> Result<(Self, ChildStdin, ChildStdout), McpError> {
        let mut command = command(program.command, &[Need::Basics, Need::Network]);
        command.args(program.args);
        // Anything else that a server needs is named in its `env`.
        for (name, value) in program.env {
            command.env(name, value.expose_secret());
        }
        if let Some(cwd) = program.cwd {
            if !cwd.is_dir() {
                return Err(McpError::NoDirectory { cwd: cwd.to_owned() });
            }
            command.current_dir(cwd);
        }
        let server = server.to_owned();
        let log = move |line: &str| tracing::debug!(%server, "{line}");
        let (child, stdin, stdout) =
            ChildProcess::spawn_piped(command, OutputTail::keeping(KEPT_LINES), log)?;
        Ok((ServerProcess(child), stdin, stdout))
    }

    /// Waits until the server has ended, and returns how.
    pub async fn ended(&mut self) -> McpError {
        let status = match self.0.ended().await {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        McpError::Ended { status, stderr: self.last_lines() }
    }

    /// The last lines of stderr.
    pub fn last_lines(&self) -> String {
        self.0.last_lines()
    }

    /// Stops the server, whose stdin must be closed.
    pub async fn stop(mut self) {
        self.0.stop(STOP_TIMEOUTS).await;
    }
}

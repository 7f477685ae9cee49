//! A server that runs as our child: its start, its last words, its end and that of whatever it started.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use hob_process::{Need, OutputTail, ProcessGroup, drain, lead_a_group};
use secrecy::{ExposeSecret, SecretString};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::McpError;

/// A server is told to end by closing its stdin. Most do.
const PATIENCE_AFTER_EOF: Duration = Duration::from_secs(1);

const PATIENCE_AFTER_SIGTERM: Duration = Duration::from_secs(2);

/// As many lines of stderr as an error shows.
const KEPT_LINES: usize = 5;

/// What is run.
pub struct ServerCommand<'a> {
    pub command: &'a PathBuf,
    pub args: &'a [String],
    pub env: &'a [(String, SecretString)],
    pub cwd: Option<&'a Path>,
}

/// A running child. Dropping it kills it and all that it started.
pub struct ServerProcess {
    child: Child,
    group: ProcessGroup,
    stderr: OutputTail,
    drains: JoinSet<()>,
}

impl ServerProcess {
    /// Starts the program for the server `server`.
    pub fn spawn(
        server: &str,
        program: ServerCommand<'_>,
    ) -> Result<(Self, ChildStdin, ChildStdout), McpError> {
        if let Some(cwd) = program.cwd
            && !cwd.is_dir()
        {
            return Err(McpError::NoDirectory { cwd: cwd.to_owned() });
        }
        let failed = |source: std::io::Error| {
            let command = program.command.clone();
            match source.kind() {
                ErrorKind::NotFound => McpError::Missing { command },
                ErrorKind::PermissionDenied => McpError::NotExecutable { command },
                _ => McpError::Spawn { command, source },
            }
        };
        let mut child = command(&program).spawn().map_err(failed)?;
        let group = ProcessGroup::led_by(child.id());
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed(std::io::Error::other("it has no stdin or stdout")));
        };
        let stderr = OutputTail::keeping(KEPT_LINES);
        let mut drains = JoinSet::new();
        if let Some(stream) = child.stderr.take() {
            let server = server.to_owned();
            let tell = move |line: &str| tracing::debug!(%server, "{line}");
            drains.spawn(drain(stream, stderr.clone(), tell));
        }
        Ok((ServerProcess { child, group, stderr, drains }, stdin, stdout))
    }

    /// Waits until it is gone, and says why.
    pub async fn ended(&mut self) -> McpError {
        let status = match self.child.wait().await {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        self.group.kill();
        // Its last words may still be in the pipe. Somebody who left the group could hold that open for ever.
        let _ = timeout(PATIENCE_AFTER_EOF, self.drains.join_next()).await;
        McpError::Ended { status, stderr: self.last_words() }
    }

    /// The last lines it wrote to stderr.
    pub fn last_words(&self) -> String {
        self.stderr.joined("\n")
    }

    /// Waits for it to end after its stdin was closed, and makes it end.
    pub async fn stop(mut self) {
        if timeout(PATIENCE_AFTER_EOF, self.child.wait()).await.is_err() {
            self.group.terminate();
            // The group is killed in any case, by the drop of its value.
            let _ = timeout(PATIENCE_AFTER_SIGTERM, self.child.wait()).await;
        }
        self.group.kill();
        if let Err(error) = self.child.kill().await {
            tracing::warn!(%error, "an MCP server cannot be killed");
        }
    }
}

fn command(program: &ServerCommand<'_>) -> Command {
    let mut command = hob_process::command(program.command, &[Need::Basics, Need::Network]);
    command
        .args(program.args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    // Anything else that a server needs is named in its `env`.
    for (name, value) in program.env {
        command.env(name, value.expose_secret());
    }
    if let Some(cwd) = program.cwd {
        command.current_dir(cwd);
    }
    lead_a_group(&mut command);
    command
}

//! The subprocess of the WhatsApp channel, and the lock of its session.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hob_process::{ChildProcess, ChildStartError, LockFile, Need, OutputTail, StopTimeouts, command};
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::time::timeout;
use tokio_util::codec::{FramedRead, LinesCodec};

/// A longer line ends the subprocess: it could not be skipped without being read.
const MAX_LINE_BYTES: usize = 1 << 20;

/// The number of stderr lines in an error.
const KEPT_LINES: usize = 5;

const STOP_TIMEOUTS: StopTimeouts =
    StopTimeouts { after_eof: Duration::from_secs(2), after_sigterm: Duration::from_secs(2) };

const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// Longer than the subprocess may take to stop.
const REST_TIMEOUT: Duration = Duration::from_secs(5);

/// The program to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WhatsappProgram {
    /// The runtime: a path, or a name in `PATH`.
    pub node: PathBuf,
    pub script: PathBuf,
    /// The directory of the session.
    pub auth_dir: PathBuf,
}

/// The lines that the subprocess writes.
pub(crate) type Lines = FramedRead<ChildStdout, LinesCodec>;

/// The running subprocess. Dropping it kills it and everything that it started.
pub(crate) struct Process {
    child: ChildProcess,
    stdin: ChildStdin,
}

impl Process {
    pub fn spawn(program: &WhatsappProgram) -> Result<(Self, Lines), WhatsappStartError> {
        if !program.script.is_file() {
            return Err(WhatsappStartError::NotInstalled);
        }
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let script = absolute(&program.script);
        let mut command = command(&program.node, &[Need::Basics, Need::Network, Need::Node]);
        command
            .arg(&script)
            .arg("--auth-dir")
            .arg(absolute(&program.auth_dir))
            // Not the current directory: its files may belong to another user.
            .current_dir(script.parent().unwrap_or(Path::new("/")));
        let log = |line: &str| tracing::debug!(target: "hob_channels::whatsapp::output", "{line}");
        let spawned = ChildProcess::spawn_piped(command, OutputTail::keeping(KEPT_LINES), log);
        let (child, stdin, stdout) = spawned.map_err(|error| match error {
            ChildStartError::Missing { program } => WhatsappStartError::NoNode { node: program },
            error => WhatsappStartError::Failed(error.to_string()),
        })?;
        let lines = FramedRead::new(stdout, LinesCodec::new_with_max_length(MAX_LINE_BYTES));
        Ok((Process { child, stdin }, lines))
    }

    pub async fn write(&mut self, line: &str) -> Result<(), String> {
        match timeout(WRITE_TIMEOUT, self.stdin.write_all(line.as_bytes())).await {
            Ok(written) => written.map_err(|error| error.to_string()),
            Err(_) => Err("it does not read its input".to_owned()),
        }
    }

    /// Waits until the subprocess has ended, and returns how.
    pub async fn ended(&mut self) -> String {
        let status = match self.child.ended().await {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        match self.child.last_lines() {
            lines if lines.is_empty() => status,
            lines => format!("{status}; last lines of its output: {}", lines.replace('\n', " / ")),
        }
    }

    /// Sends a last line and closes stdin, then stops the subprocess. `rest` reads what it still writes; it gets as long as that
    /// takes, and at most [`REST_TIMEOUT`].
    pub async fn stop(mut self, last_line: &str, rest: impl Future<Output = ()>) {
        // The subprocess also stops when its stdin is closed.
        let _ = self.write(last_line).await;
        drop(self.stdin);
        let _ = tokio::join!(self.child.stop(STOP_TIMEOUTS), timeout(REST_TIMEOUT, rest));
    }
}

/// Why the subprocess does not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WhatsappStartError {
    #[error(
        "WhatsApp needs Node.js 20 or newer, but '{}' was not found. Install it from nodejs.org or with your package manager",
        node.display()
    )]
    NoNode { node: PathBuf },
    #[error("the WhatsApp bridge is not installed. Run 'hob channel login whatsapp'")]
    NotInstalled,
    #[error("{0}")]
    Failed(String),
    #[error("another Hob uses the WhatsApp session in {}; stop it first", auth_dir.display())]
    InUse { auth_dir: PathBuf },
    #[error("cannot use the session directory {}: {reason}", auth_dir.display())]
    Directory { auth_dir: PathBuf, reason: String },
}

/// The lock of the session: WhatsApp disconnects a session when a second program uses it.
pub(crate) struct Session {
    _lock: LockFile,
}

impl Session {
    /// Creates the directory, readable by its owner only, and locks it.
    pub fn claim(auth_dir: &Path) -> Result<Self, WhatsappStartError> {
        let failed = |error: std::io::Error| WhatsappStartError::Directory {
            auth_dir: auth_dir.to_owned(),
            reason: error.to_string(),
        };
        std::fs::create_dir_all(auth_dir).map_err(failed)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(auth_dir, std::fs::Permissions::from_mode(0o700)).map_err(failed)?;
        }
        let lock = LockFile::try_take(&auth_dir.join(".lock")).map_err(failed)?;
        let lock = lock.ok_or_else(|| WhatsappStartError::InUse { auth_dir: auth_dir.to_owned() })?;
        Ok(Session { _lock: lock })
    }
}

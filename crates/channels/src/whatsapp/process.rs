//! The subprocess: starts it, reads its lines and its last output, and ends it with all processes that it started.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use hob_process::{Need, OutputTail, ProcessGroup, command, drain, lead_a_group};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::codec::{FramedRead, LinesCodec};

/// Longer lines cost the process: they could not be skipped without being read.
const MAX_LINE_BYTES: usize = 1 << 20;

/// As many lines of stderr as are shown when it dies.
const KEPT_LINES: usize = 5;

/// How long it may take to end after a request.
const END_WITHIN: Duration = Duration::from_secs(2);

/// The longest wait for its stdin to take a line.
const WRITE_WITHIN: Duration = Duration::from_secs(5);

/// What is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WhatsappProgram {
    /// The runtime: a path, or a name to be found in `PATH`.
    pub node: PathBuf,
    pub script: PathBuf,
    /// Where the session is kept.
    pub auth_dir: PathBuf,
}

/// Its lines, as they come.
pub(crate) type Lines = FramedRead<ChildStdout, LinesCodec>;

/// The running subprocess. Dropping it kills it and all that it started.
pub(crate) struct Process {
    child: Child,
    group: ProcessGroup,
    stdin: Option<ChildStdin>,
    tail: OutputTail,
    drains: JoinSet<()>,
}

impl Process {
    /// Starts it; the error says what is missing and what to do about it.
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
            .current_dir(script.parent().unwrap_or(Path::new("/")))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        lead_a_group(&mut command);
        let mut child = command.spawn().map_err(|error| match error.kind() {
            ErrorKind::NotFound => WhatsappStartError::NoNode { node: program.node.clone() },
            _ => WhatsappStartError::Failed { node: program.node.clone(), reason: error.to_string() },
        })?;
        let group = ProcessGroup::led_by(child.id());
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            let reason = "it has no stdin or stdout".to_owned();
            return Err(WhatsappStartError::Failed { node: program.node.clone(), reason });
        };
        let tail = OutputTail::keeping(KEPT_LINES);
        let mut drains = JoinSet::new();
        if let Some(stderr) = child.stderr.take() {
            let tell = |line: &str| tracing::debug!(target: "hob_channels::whatsapp::output", "{line}");
            drains.spawn(drain(stderr, tail.clone(), tell));
        }
        let lines = FramedRead::new(stdout, LinesCodec::new_with_max_length(MAX_LINE_BYTES));
        Ok((Process { child, group, stdin: Some(stdin), tail, drains }, lines))
    }

    /// Gives it a line.
    pub async fn write(&mut self, line: &str) -> Result<(), String> {
        let Some(stdin) = &mut self.stdin else { return Err("it was told to end".to_owned()) };
        match timeout(WRITE_WITHIN, stdin.write_all(line.as_bytes())).await {
            Ok(written) => written.map_err(|error| error.to_string()),
            Err(_) => Err("it reads nothing".to_owned()),
        }
    }

    /// Waits until it is gone, and says how it went.
    pub async fn ended(&mut self) -> String {
        let status = match self.child.wait().await {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        self.group.kill();
        // Its last words may still be in the pipe. A process that left the group could hold it open forever.
        let _ = timeout(END_WITHIN, self.drains.join_next()).await;
        match self.tail.joined(" / ") {
            words if words.is_empty() => status,
            words => format!("{status}; its last words: {words}"),
        }
    }

    /// Makes it end: politely, then firmly, then by force.
    pub async fn stop(mut self, farewell: &str) {
        // Whether it hears the farewell does not matter: its stdin closes behind it.
        let _ = self.write(farewell).await;
        self.stdin = None;
        if timeout(END_WITHIN, self.child.wait()).await.is_err() {
            self.group.terminate();
            let _ = timeout(END_WITHIN, self.child.wait()).await;
        }
        self.group.kill();
        if let Err(error) = self.child.kill().await {
            tracing::warn!(%error, "the WhatsApp bridge cannot be killed");
        }
    }
}

/// Why it does not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WhatsappStartError {
    #[error(
        "WhatsApp needs Node.js 20 or newer, and there is no '{}'. Install it (nodejs.org, or your package manager)",
        node.display()
    )]
    NoNode { node: PathBuf },
    #[error("the WhatsApp bridge is not installed. Run 'hob channel login whatsapp'")]
    NotInstalled,
    #[error("'{}' cannot be started: {reason}", node.display())]
    Failed { node: PathBuf, reason: String },
    #[error("another Hob uses the WhatsApp session in {}; stop it first", auth_dir.display())]
    InUse { auth_dir: PathBuf },
    #[error("the session's directory {} cannot be used: {reason}", auth_dir.display())]
    Directory { auth_dir: PathBuf, reason: String },
}

/// Held for as long as the session is used: two programs with one session throw each other out.
pub(crate) struct Session {
    _lock: std::fs::File,
}

impl Session {
    /// Makes the directory, for its owner only, and claims it.
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
        let lock = std::fs::File::create(auth_dir.join(".lock")).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(Session { _lock: lock }),
            Err(std::fs::TryLockError::WouldBlock) => {
                Err(WhatsappStartError::InUse { auth_dir: auth_dir.to_owned() })
            }
            Err(std::fs::TryLockError::Error(error)) => Err(failed(error)),
        }
    }
}

//! A server that runs as our child: its start, its last words, its end and that of whatever it started.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::McpError;

/// A server is told to end by closing its stdin. Most do.
const PATIENCE_AFTER_EOF: Duration = Duration::from_secs(1);

const PATIENCE_AFTER_SIGTERM: Duration = Duration::from_secs(2);

/// Longer lines of stderr are cut.
const MAX_LINE_BYTES: usize = 1_024;

/// As many lines of stderr as an error shows.
const KEPT_LINES: usize = 5;

/// What a stranger's program has no business with. Whoever wants a server to have one names it in the server's `env`.
const OUR_KEYS: [&str; 5] =
    ["HOB_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"];

/// What is run.
pub struct Program<'a> {
    pub command: &'a PathBuf,
    pub args: &'a [String],
    pub env: &'a [(String, SecretString)],
    pub cwd: Option<&'a Path>,
}

/// A running child. Dropping it kills it and all that it started.
pub struct Process {
    child: Child,
    group: Group,
    stderr: Tail,
    drain: JoinSet<()>,
}

impl Process {
    /// Starts the program for the server `server`.
    pub fn spawn(server: &str, program: Program<'_>) -> Result<(Self, ChildStdin, ChildStdout), McpError> {
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
        let group = Group::led_by(child.id());
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed(std::io::Error::other("it has no stdin or stdout")));
        };
        let stderr = Tail::default();
        let mut drain = JoinSet::new();
        if let Some(stream) = child.stderr.take() {
            drain.spawn(read_lines(stream, server.to_owned(), stderr.clone()));
        }
        Ok((Process { child, group, stderr, drain }, stdin, stdout))
    }

    /// Waits until it is gone, and says why.
    pub async fn ended(&mut self) -> McpError {
        let status = match self.child.wait().await {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        self.group.kill();
        // Its last words may still be in the pipe. Somebody who left the group could hold that open for ever.
        let _ = timeout(PATIENCE_AFTER_EOF, self.drain.join_next()).await;
        McpError::Ended { status, stderr: self.last_words() }
    }

    /// The last lines it wrote to stderr.
    pub fn last_words(&self) -> String {
        self.stderr.text()
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

fn command(program: &Program<'_>) -> Command {
    let mut command = Command::new(program.command);
    command
        .args(program.args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    for key in OUR_KEYS {
        command.env_remove(key);
    }
    for (name, value) in program.env {
        command.env(name, value.expose_secret());
    }
    if let Some(cwd) = program.cwd {
        command.current_dir(cwd);
    }
    // A group of its own: whatever the server starts ends with it, and Ctrl-C on our terminal is ours to handle.
    #[cfg(unix)]
    command.process_group(0);
    command
}

/// The last lines of a stream.
#[derive(Clone, Default)]
struct Tail(Arc<Mutex<VecDeque<String>>>);

impl Tail {
    fn push(&self, line: String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == KEPT_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    fn text(&self) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Vec::from(lines.clone()).join("\n")
    }
}

/// Reads to the end, so that the child never waits for a full pipe.
async fn read_lines(mut stream: impl AsyncRead + Unpin, server: String, tail: Tail) {
    let mut chunk = vec![0; 8_192];
    let mut line = Vec::new();
    // A pipe that cannot be read has ended, as far as anybody can tell.
    while let Ok(count @ 1..) = stream.read(&mut chunk).await {
        for piece in chunk[..count].split_inclusive(|byte| *byte == b'\n') {
            let room = MAX_LINE_BYTES - line.len();
            line.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                finish_line(&mut line, &server, &tail);
            }
        }
    }
    finish_line(&mut line, &server, &tail);
}

fn finish_line(line: &mut Vec<u8>, server: &str, tail: &Tail) {
    let text = String::from_utf8_lossy(line).trim_end().to_owned();
    line.clear();
    if !text.is_empty() {
        tracing::debug!(%server, "{text}");
        tail.push(text);
    }
}

/// The child and whatever it started. They die with the value.
#[cfg(unix)]
struct Group(Option<rustix::process::Pid>);

#[cfg(unix)]
impl Group {
    /// The group of a child that was started as the leader of its own.
    fn led_by(pid: Option<u32>) -> Self {
        let pid = pid.and_then(|pid| i32::try_from(pid).ok());
        Group(pid.and_then(rustix::process::Pid::from_raw))
    }

    fn terminate(&self) {
        self.signal(rustix::process::Signal::TERM);
    }

    /// The last signal. Once the leader is gone its number may come to mean somebody else, so it is forgotten.
    fn kill(&mut self) {
        self.signal(rustix::process::Signal::KILL);
        self.0 = None;
    }

    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(leader) = self.0 {
            // The only failure is that nobody is left, which is what a signal is for.
            let _ = rustix::process::kill_process_group(leader, signal);
        }
    }
}

#[cfg(unix)]
impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Elsewhere there are no process groups: the child alone is killed, by its own handle.
#[cfg(not(unix))]
struct Group;

#[cfg(not(unix))]
impl Group {
    fn led_by(_pid: Option<u32>) -> Self {
        Group
    }

    fn terminate(&self) {}

    fn kill(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn kept(written: &[u8]) -> String {
        let tail = Tail::default();
        read_lines(written, "x".to_owned(), tail.clone()).await;
        tail.text()
    }

    #[test]
    fn our_keys_are_for_nobody_else_unless_they_are_given() {
        let env = [("OPENAI_API_KEY".to_owned(), "given".into())];
        let program = Program { command: &PathBuf::from("x"), args: &[], env: &env, cwd: None };
        let command = command(&program);
        let environment: Vec<_> = command.as_std().get_envs().collect();
        let expected =
            OUR_KEYS.map(|key| (key.as_ref(), (key == "OPENAI_API_KEY").then_some("given".as_ref())));
        assert_eq!(environment.len(), expected.len());
        assert!(expected.iter().all(|key| environment.contains(key)), "{environment:?}");
    }

    #[tokio::test]
    async fn only_the_last_lines_are_kept() {
        let written: String = (1..=40).map(|number| format!("line {number}\r\n\n")).collect();
        assert_eq!(kept(written.as_bytes()).await, "line 36\nline 37\nline 38\nline 39\nline 40");
    }

    #[tokio::test]
    async fn a_line_without_end_is_cut_and_the_next_one_is_whole() {
        let written = [vec![b'x'; 1 << 20], b"\nnext".to_vec()].concat();
        assert_eq!(kept(&written).await, format!("{}\nnext", "x".repeat(MAX_LINE_BYTES)));
    }
}

//! A running `hob serve`.

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};

use crate::home::{Home, Ran};

/// The server. It is killed when the value is dropped.
pub struct Running {
    child: Child,
    stdout: ChildStdout,
    stderr: Lines<BufReader<ChildStderr>>,
    /// The first four lines it printed.
    pub summary: [String; 4],
    heard: String,
    /// It exists as long as the server runs, also where a test keeps no home of its own.
    _home: Option<Home>,
}

impl Running {
    pub async fn start(home: &Home, arguments: &[&str]) -> Self {
        let arguments: Vec<&str> = ["serve", "--port", "0"].iter().chain(arguments).copied().collect();
        let server = Self::of(home.hob(&arguments)).await;
        Running { _home: Some(home.clone()), ..server }
    }

    pub async fn of(command: Command) -> Self {
        let started = Self::try_of(command).await;
        started.unwrap_or_else(|complaint| panic!("hob serve did not start:\n{complaint}"))
    }

    /// The server, or what it printed on stderr if it ended instead.
    pub async fn try_of(mut command: Command) -> Result<Self, String> {
        let mut child = command.spawn().expect("hob starts");
        let mut stdout = child.stdout.take().expect("a pipe");
        let mut stderr = child.stderr.take().expect("a pipe");
        let Some(summary) = read_summary(&mut stdout).await else {
            let mut complaint = String::new();
            stderr.read_to_string(&mut complaint).await.expect("text");
            child.wait().await.expect("hob ends");
            return Err(complaint);
        };
        let stderr = BufReader::new(stderr).lines();
        Ok(Running { child, stdout, stderr, summary, heard: String::new(), _home: None })
    }

    /// Such as `127.0.0.1:45123`.
    pub fn address(&self) -> &str {
        let (_, rest) = self.summary[3].split_once("://").expect("the line with the URL");
        rest.split_whitespace().next().expect("an address")
    }

    pub fn pid(&self) -> Pid {
        let pid = self.child.id().expect("hob runs");
        Pid::from_raw(pid.try_into().expect("a small number")).expect("not zero")
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("hob runs");
    }

    /// Waits for its end.
    #[cfg(target_os = "linux")]
    pub async fn ended(&mut self) {
        self.child.wait().await.expect("hob ends");
    }

    /// Waits for a line on stderr.
    pub async fn says(&mut self, needle: &str) {
        loop {
            let line = self.stderr.next_line().await.expect("text");
            let line = line.unwrap_or_else(|| panic!("hob ended without saying '{needle}':\n{}", self.heard));
            self.heard += &format!("{line}\n");
            if line.contains(needle) {
                return;
            }
        }
    }

    /// Waits for its end. Returns what it printed after the summary, and all of stderr.
    pub async fn end(mut self) -> Ran {
        let mut stdout = String::new();
        self.stdout.read_to_string(&mut stdout).await.expect("text");
        while let Some(line) = self.stderr.next_line().await.expect("text") {
            self.heard += &format!("{line}\n");
        }
        let status = self.child.wait().await.expect("hob ends");
        Ran { code: status.code(), stdout, stderr: self.heard }
    }

    pub async fn terminate(self) -> Ran {
        self.signal(Signal::TERM);
        self.end().await
    }
}

/// Reads byte by byte, so that nothing after the summary is lost; `None` if there are fewer lines.
async fn read_summary(stdout: &mut (impl AsyncRead + Unpin)) -> Option<[String; 4]> {
    let mut text = String::new();
    while text.matches('\n').count() < 4 {
        text.push(stdout.read_u8().await.ok()?.into());
    }
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.try_into().ok()
}

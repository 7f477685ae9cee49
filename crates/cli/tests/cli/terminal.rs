//! `hob` in a pseudo-terminal that a test types into and reads.

use std::time::Duration;

use anstream::adapter::strip_str;
use pty_process::{Pty, Size};
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{LocalModes, tcgetattr};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::home::Home;

/// Long enough on a busy machine.
const WAIT_LIMIT: Duration = Duration::from_secs(240);

/// The bytes of special keys.
pub const CTRL_C: &str = "\x03";
pub const CTRL_D: &str = "\x04";
pub const ALT_ENTER: &str = "\x1b\r";

/// The terminal. The program in it is killed when the value is dropped.
pub struct Terminal {
    pty: Pty,
    child: Child,
    shown: Vec<u8>,
    /// The part of the text that was already searched.
    looked_at: usize,
}

impl Terminal {
    pub fn start(home: &Home, arguments: &[&str]) -> Self {
        Self::of(home.hob(arguments))
    }

    pub fn of(mut command: Command) -> Self {
        let (pty, pts) = pty_process::open().expect("a terminal");
        pty.resize(Size::new(24, 80)).expect("a size");
        command.env("TERM", "xterm-256color");
        let child = pty_process::Command::from(command).spawn(pts).expect("hob starts");
        Terminal { pty, child, shown: Vec::new(), looked_at: 0 }
    }

    /// Types these keys.
    pub async fn keys(&mut self, keys: &str) {
        self.pty.write_all(keys.as_bytes()).await.expect("hob runs");
    }

    /// Types a line.
    pub async fn line(&mut self, line: &str) {
        self.keys(&format!("{line}\r")).await;
    }

    /// The complete output.
    pub fn raw(&self) -> String {
        String::from_utf8_lossy(&self.shown).into_owned()
    }

    /// The same without colours and cursor movements.
    pub fn text(&self) -> String {
        strip_str(&self.raw()).to_string().replace('\r', "")
    }

    /// Waits until this is shown after the last match. Returns the text in between.
    pub async fn sees(&mut self, needle: &str) -> String {
        loop {
            let text = self.text();
            let news = text.get(self.looked_at..).unwrap_or_default();
            if let Some(at) = news.find(needle) {
                self.looked_at += at + needle.len();
                return news[..at].to_owned();
            }
            if !self.read().await {
                panic!("hob ended without showing '{needle}':\n{text}");
            }
        }
    }

    /// Reads more; `false` if the program has ended.
    async fn read(&mut self) -> bool {
        let mut buffer = [0; 4096];
        match timeout(WAIT_LIMIT, self.pty.read(&mut buffer)).await {
            Ok(Ok(count)) => {
                self.shown.extend_from_slice(&buffer[..count]);
                count > 0
            }
            // A terminal cannot be read after its program has ended.
            Ok(Err(_)) => false,
            Err(_) => panic!("nothing more is shown:\n{}", self.text()),
        }
    }

    pub fn signal(&self, signal: Signal) {
        let pid = self.child.id().expect("hob runs");
        let pid = Pid::from_raw(pid.try_into().expect("a small number")).expect("not zero");
        kill_process(pid, signal).expect("hob runs");
    }

    /// Waits for the end of the program.
    pub async fn end(&mut self) -> Option<i32> {
        while self.read().await {}
        self.child.wait().await.expect("hob ends").code()
    }

    /// Closes the terminal like a closed window, and waits for the end of the program.
    pub async fn close(self) -> Option<i32> {
        let Terminal { pty, mut child, .. } = self;
        drop(pty);
        timeout(WAIT_LIMIT, child.wait()).await.expect("hob ends with its terminal").expect("hob ends").code()
    }

    /// Whether typed characters are shown.
    pub fn has_echo(&self) -> bool {
        tcgetattr(&self.pty).expect("a terminal").local_modes.contains(LocalModes::ECHO | LocalModes::ICANON)
    }
}

//! A real llama.cpp server with a real model, as a process of its own. `./dev test` installs both.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::tied_command;

/// A part that `./dev` installs for tests.
pub fn part(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| {
        panic!("${variable} is not set. This test needs a real engine: run it with './dev test', which installs one.")
    })
}

/// The server. It is killed with its value.
pub struct LlamaServer {
    child: Child,
}

impl LlamaServer {
    /// Starts it on this port, with further arguments, and waits until it is ready.
    pub async fn start(port: u16, arguments: &[&str]) -> Self {
        let mut child = Command::from(tied_command(part("HOB_TEST_LLAMA_SERVER")))
            .args(["--host", "127.0.0.1", "--port", &port.to_string(), "-m", &part("HOB_TEST_MODEL")])
            .args(arguments)
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the script starts");
        let mut said = String::new();
        let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        loop {
            let line = lines.next_line().await.expect("text");
            let line = line.unwrap_or_else(|| panic!("llama-server does not start:\n{said}"));
            if line.contains("listening on") {
                break;
            }
            said += &format!("{line}\n");
        }
        // Its log must go somewhere, or it stops when the pipe is full.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        LlamaServer { child }
    }

    /// For signals.
    pub fn pid(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    /// Ends it as a crash would, and waits until it is gone.
    pub async fn kill(&mut self) {
        self.child.kill().await.expect("it runs");
    }
}

//! The `hob serve` that is measured, and what it uses.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use hob_testkit::{free_port, tied_command};
use tempfile::TempDir;

/// How long it may take to listen.
const START_LIMIT: std::time::Duration = std::time::Duration::from_secs(60);

/// An address on which nothing listens.
const NOWHERE: &str = "http://127.0.0.1:9";

pub struct Server {
    pub port: u16,
    child: Child,
    home: TempDir,
}

impl Server {
    pub fn start(hob: &Path, engine: &str, gateway: &str) -> Self {
        let home = tempfile::tempdir().expect("a directory");
        fs::write(home.path().join("config.toml"), config(engine, gateway)).expect("a file");
        let log = File::create(home.path().join("log")).expect("a file");
        let port = free_port();
        let mut command: Command = tied_command(hob);
        let child = command
            .args(["serve", "--port", &port.to_string()])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", home.path())
            .env("HOB_HOME", home.path())
            .env("HF_ENDPOINT", NOWHERE)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("hob starts");
        let mut server = Server { port, child, home };
        let began = std::time::Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            let is_alive = server.is_running() && began.elapsed() < START_LIMIT;
            assert!(is_alive, "hob does not start:\n{}", server.log());
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        server
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|ended| ended.is_none())
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.home.path().join("log")).unwrap_or_default()
    }

    /// A figure of `/proc/PID/status`, such as `VmRSS` in kilobytes.
    pub fn status(&self, name: &str) -> f64 {
        let text = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|value| value.split_whitespace().next()?.parse().ok()).unwrap_or(f64::NAN)
    }

    pub fn descriptors(&self) -> f64 {
        let directory = fs::read_dir(format!("/proc/{}/fd", self.child.id()));
        directory.map_or(f64::NAN, |entries| entries.count() as f64)
    }

    /// Bytes of the databases, with their logs.
    pub fn database(&self) -> f64 {
        let entries = fs::read_dir(self.home.path()).expect("a directory").flatten();
        let databases = entries.filter(|entry| entry.file_name().to_string_lossy().contains(".db"));
        databases.filter_map(|entry| entry.metadata().ok()).map(|file| file.len() as f64).sum()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn config(engine: &str, gateway: &str) -> String {
    let mut text =
        "[server]\nannounce = false\nhost = \"127.0.0.1\"\n[engine]\ndefault = \"vllm\"\n".to_owned();
    for key in ["ollama", "vllm", "sglang", "llamacpp", "litellm"] {
        let host = if key == "vllm" { engine } else { NOWHERE };
        text += &format!("[engine.{key}]\nhost = \"{host}\"\n");
    }
    text += "[engine.cloud]\n";
    for provider in ["openai", "anthropic", "gemini"] {
        text += &format!("{provider}_host = \"{NOWHERE}\"\n");
    }
    text + &format!(
        "[channel]\nenabled = true\ngateway_url = \"{gateway}\"\n[scheduler]\nenabled = true\npoll_interval = 5.0\n"
    )
}

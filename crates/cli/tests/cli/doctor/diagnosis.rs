//! What `hob doctor` found, read from its JSON.

use std::process::Stdio;
use std::time::Instant;

use serde::Deserialize;
use tokio::process::Command;

use crate::home::{Home, WAIT_LIMIT, finish};

#[derive(Debug, Deserialize)]
pub struct Diagnosis {
    pub ok: bool,
    pub next: String,
    checks: Vec<Found>,
}

#[derive(Debug, Deserialize)]
struct Found {
    name: String,
    status: String,
    message: String,
    advice: Option<String>,
}

impl Diagnosis {
    pub async fn of(home: &Home) -> Self {
        Self::from(home.hob(&["doctor", "--json"])).await
    }

    /// Runs this command. Asserts that the exit code and the verdict agree.
    pub async fn from(command: Command) -> Self {
        let ran = finish(command).await;
        assert_eq!(ran.stderr, "", "all it has to say is in the report");
        let found: Diagnosis = serde_json::from_str(&ran.stdout).expect("JSON");
        assert_eq!(ran.code, Some(i32::from(!found.ok)), "{found:#?}");
        found
    }

    /// Runs the doctor until it shows this: on a busy machine, an engine or a server may take longer to answer than the doctor waits for it.
    pub async fn that_shows(home: &Home, name: &str, status: &str, words: &str) -> Self {
        let started = Instant::now();
        loop {
            let found = Self::of(home).await;
            if found.has(name, status, words) {
                return found;
            }
            assert!(
                started.elapsed() < WAIT_LIMIT,
                "no '{name}' that is {status} and says '{words}': {found:#?}"
            );
        }
    }

    /// Whether there is a check with this name and status whose message contains these words.
    fn has(&self, name: &str, status: &str, words: &str) -> bool {
        self.checks
            .iter()
            .any(|check| check.name == name && check.status == status && check.message.contains(words))
    }

    /// Fails unless there is a check with this name and status whose message contains these words.
    pub fn shows(&self, name: &str, status: &str, words: &str) -> &Self {
        assert!(self.has(name, status, words), "no '{name}' that is {status} and says '{words}': {self:#?}");
        self
    }

    pub fn says_nothing_of(&self, name: &str) -> &Self {
        assert!(self.checks.iter().all(|check| check.name != name), "{self:#?}");
        self
    }

    /// Fails unless Hob is ready and this is the next step.
    pub fn is_ready_and_next_is(&self, words: &str) {
        assert!(self.ok && self.next.contains(words), "not ready, or not '{words}': {self:#?}");
    }

    /// Fails unless Hob is not ready and this is the next step.
    pub fn is_not_ready_and_next_is(&self, words: &str) {
        assert!(!self.ok && self.next.contains(words), "ready, or not '{words}': {self:#?}");
    }

    pub fn advice_on(&self, name: &str) -> Option<&str> {
        self.checks.iter().find(|check| check.name == name)?.advice.as_deref()
    }
}

/// `hob doctor` in a bubblewrap sandbox: another network, a small disk, a directory that cannot be written.
#[cfg(target_os = "linux")]
pub fn in_sandbox(home: &Home, restrictions: &[&str], arguments: &[&str]) -> Command {
    let mut command = Command::new("bwrap");
    command
        .args(["--dev-bind", "/", "/"])
        .args(restrictions)
        .args(["--", env!("CARGO_BIN_EXE_hob"), "doctor"])
        .args(arguments)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home.directory())
        .env("HOB_HOME", home.directory())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

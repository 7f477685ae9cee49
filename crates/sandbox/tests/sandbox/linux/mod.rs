//! The sandbox on this machine's real kernel: what programs can do in it, and what they cannot.

#![allow(clippy::disallowed_methods, reason = "tests start programs with the environment they were given")]
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up should fail loudly")]

mod bwrap;
mod container;
mod escape;
mod limits;
mod mounts;
mod podman;

use std::path::PathBuf;
use std::time::Duration;

use hob_sandbox::{Job, JobResult, Runtime, Sandbox, SandboxOptions, ScriptLanguage};

/// Real bubblewrap, with time enough for a busy machine.
fn options() -> SandboxOptions {
    SandboxOptions {
        enabled: true,
        runtime: Runtime::Bwrap,
        timeout: Duration::from_secs(30),
        ..SandboxOptions::default()
    }
}

fn sandbox() -> Sandbox {
    Sandbox::new(options())
}

async fn run(language: ScriptLanguage, code: impl Into<String>) -> JobResult {
    sandbox().run(Job::new(language, code)).await.unwrap()
}

async fn sh(code: impl Into<String>) -> JobResult {
    run(ScriptLanguage::Sh, code).await
}

async fn python(code: impl Into<String>) -> JobResult {
    run(ScriptLanguage::Python, code).await
}

/// A word that no other process of this machine has in its command line.
fn marker() -> String {
    format!("31{:07}.{:06}", std::process::id(), fastrand::u32(..1_000_000))
}

/// Processes of this machine whose command line has `marker` in it. The code itself is in none: it travels another way.
fn processes_with(marker: &str) -> Vec<PathBuf> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let has_marker = |process: &PathBuf| {
        let line = std::fs::read(process.join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(marker)
    };
    processes.filter(has_marker).collect()
}

/// Waits until a condition about the system outside holds.
async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..2_400 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("never happened: {what}");
}

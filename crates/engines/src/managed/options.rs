//! What to run as a managed server, and why it does not run.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use hob_core::Backoff;
use thiserror::Error;

/// What to run, and how patiently.
#[derive(Debug, Clone)]
pub struct ManagedOptions {
    /// A `llama-server`: a path, or a name to be found in `PATH`.
    pub binary: PathBuf,
    /// The model file it serves; `None` leaves that to `args`.
    pub model: Option<PathBuf>,
    /// Where it is to listen, such as `http://localhost:8080`.
    pub host_url: String,
    /// Further arguments, as they are.
    pub args: Vec<String>,
    /// The longest wait for it to be ready. Big models take long to load.
    pub start_timeout: Duration,
    /// The longest wait for it to stop when told to, before it is killed.
    pub stop_timeout: Duration,
    /// The waits before it is started again.
    pub backoff: Backoff,
}

impl ManagedOptions {
    pub fn new(binary: impl Into<PathBuf>, host_url: impl Into<String>) -> Self {
        ManagedOptions {
            binary: binary.into(),
            model: None,
            host_url: host_url.into(),
            args: Vec::new(),
            start_timeout: Duration::from_secs(120),
            stop_timeout: Duration::from_secs(5),
            backoff: Backoff::default(),
        }
    }
}

/// Why the server does not run.
#[derive(Debug, Error)]
pub enum ManagedError {
    #[error("a managed server cannot listen on '{url}': {reason}")]
    Address { url: String, reason: String },

    #[error("something else listens on {address} already; stop it, or give the managed server another port")]
    AddressTaken { address: String },

    #[error("there is no program '{}' (or, if it is a script, none to run it with)", binary.display())]
    Missing { binary: PathBuf },

    #[error("'{}' is no program that may be run; is it executable?", binary.display())]
    NotExecutable { binary: PathBuf },

    #[error("'{}' cannot be started", binary.display())]
    Spawn {
        binary: PathBuf,
        #[source]
        source: std::io::Error,
    },

    #[error("'{}' ended ({status}) before it was ready{}", binary.display(), last_words(stderr))]
    Ended {
        binary: PathBuf,
        status: ExitStatus,
        /// The last lines it wrote.
        stderr: String,
    },

    #[error("'{}' was not ready within {} s{}", binary.display(), after.as_secs_f32(), last_words(stderr))]
    NotReady {
        binary: PathBuf,
        after: Duration,
        /// The last lines it wrote.
        stderr: String,
    },
}

fn last_words(stderr: &str) -> String {
    if stderr.is_empty() { ", and said nothing".to_owned() } else { format!("; its last words:\n{stderr}") }
}

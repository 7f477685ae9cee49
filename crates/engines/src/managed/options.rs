//! The options of a managed server, and its errors.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use hob_core::Backoff;
use hob_process::ChildStartError;
use thiserror::Error;

/// What to run, and the timeouts.
#[derive(Debug, Clone)]
pub struct ManagedOptions {
    /// A `llama-server`: a path, or a name in `PATH`.
    pub binary: PathBuf,
    /// The model file. `None`: `args` name the model.
    pub model: Option<PathBuf>,
    /// The address on which it listens, such as `http://localhost:8080`.
    pub host_url: String,
    /// Additional arguments, passed unchanged.
    pub args: Vec<String>,
    /// The longest wait until it is ready. Large models take long to load.
    pub start_timeout: Duration,
    /// The longest wait for it to stop, before it is killed.
    pub stop_timeout: Duration,
    /// The delays before a restart.
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

    #[error("another program already listens on {address}; stop it, or give the managed server another port")]
    AddressTaken { address: String },

    #[error(transparent)]
    Start(#[from] ChildStartError),

    #[error("'{}' exited ({status}) before it was ready{}", binary.display(), last_lines(stderr))]
    Ended {
        binary: PathBuf,
        status: ExitStatus,
        /// The last lines it wrote.
        stderr: String,
    },

    #[error("'{}' was not ready within {} s{}", binary.display(), after.as_secs_f32(), last_lines(stderr))]
    NotReady {
        binary: PathBuf,
        after: Duration,
        /// The last lines it wrote.
        stderr: String,
    },
}

fn last_lines(stderr: &str) -> String {
    if stderr.is_empty() {
        ", without any output".to_owned()
    } else {
        format!("; last lines of its output:\n{stderr}")
    }
}

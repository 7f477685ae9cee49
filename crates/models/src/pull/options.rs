//! What the caller of a pull sets, and what the pull reports.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

/// Whether a pull may use the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DownloadPolicy {
    #[default]
    Online,
    /// Every source but a local file is an error at once.
    Offline,
}

/// What to do when a download breaks off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DownloadRetry {
    /// How often in a row without a single new byte.
    pub attempts: u32,
    /// Before the first new attempt; before the second it is twice as long, and so on.
    pub pause: Duration,
}

/// How far a pull is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DownloadProgress {
    pub step: DownloadStep,
    /// Bytes of this step.
    pub done: u64,
    pub total: Option<u64>,
}

/// What a pull is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DownloadStep {
    /// Another pull of the same model runs.
    Waiting,
    /// Asking the hub which files there are.
    Listing,
    Downloading,
    /// Computing the checksum of what is there from before.
    Checking,
    /// Out of the package that carries it.
    Unpacking,
    /// From the form it is published in to the one that is run.
    Converting,
    /// From another place on this machine.
    Copying,
}

/// What a pull may use and whom it tells.
#[derive(Clone)]
pub struct PullOptions {
    pub network: DownloadPolicy,
    /// Base URL of the model hub.
    pub hub: String,
    /// For models that the hub does not give to everybody.
    pub token: Option<SecretString>,
    /// Ways to call pip, which is asked for what the hub does not hand over; the first that works is used.
    pub pip: Vec<Vec<String>>,
    pub retry: DownloadRetry,
    /// The longest wait for the hub's next bytes.
    pub timeout: Duration,
    /// Called from any thread, a few times a second.
    pub progress: Arc<dyn Fn(DownloadProgress) + Send + Sync>,
    pub cancel: CancellationToken,
}

impl Default for PullOptions {
    fn default() -> Self {
        // Isolated: otherwise Python runs a `pip.py` of the current directory, or one that PYTHONPATH names.
        let pip = [&["python3", "-I", "-m", "pip"][..], &["pip3"], &["pip"]];
        PullOptions {
            network: DownloadPolicy::Online,
            hub: "https://huggingface.co".to_owned(),
            token: None,
            pip: pip.iter().map(|words| words.iter().map(ToString::to_string).collect()).collect(),
            retry: DownloadRetry { attempts: 5, pause: Duration::from_secs(1) },
            timeout: Duration::from_secs(60),
            progress: Arc::new(|_| ()),
            cancel: CancellationToken::new(),
        }
    }
}

impl fmt::Debug for PullOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PullOptions")
            .field("network", &self.network)
            .field("hub", &self.hub)
            .field("token", &self.token)
            .field("pip", &self.pip)
            .field("retry", &self.retry)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

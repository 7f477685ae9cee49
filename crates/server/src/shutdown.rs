//! How a server stops without cutting answers off. It first says that it is not ready, and still accepts requests: a load balancer
//! needs a moment to notice. Then it accepts none, and the running answers have the grace period to end. The rest is cut.
//!
//! Knows no socket: `listen.rs` closes its own, and each connection ends when it gets the signals.

use std::time::Duration;

use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::responses::BackgroundRuns;

/// How long cut connections have to end. The shutdown does not wait for a thread that is blocked for longer.
const CUT_WITHIN: Duration = Duration::from_secs(5);

/// The steps in which a server stops.
#[derive(Clone, Default)]
pub(crate) struct ServerStop {
    /// The server is asked to stop, and still accepts requests.
    pub(crate) draining: CancellationToken,
    /// The server accepts no more requests.
    pub(crate) stopping: CancellationToken,
}

impl ServerStop {
    /// Waits until the server accepts no more requests: the drain delay after `shutdown`.
    pub(crate) async fn drained(&self, shutdown: &CancellationToken, drain_delay: Duration) {
        shutdown.cancelled().await;
        self.draining.cancel();
        sleep(drain_delay).await;
    }
}

/// Signals a connection to stop.
#[derive(Clone, Default)]
pub(crate) struct StopSignals {
    /// Accept no further requests.
    pub(crate) closing: CancellationToken,
    /// End unfinished answers.
    pub(crate) cut: CancellationToken,
}

/// The end of a server whose socket is closed.
pub(crate) struct ServerShutdown<'a> {
    pub(crate) stop: &'a ServerStop,
    pub(crate) signals: &'a StopSignals,
    pub(crate) connections: &'a TaskTracker,
    /// Responses that no connection waits for.
    pub(crate) background: &'a BackgroundRuns,
}

impl ServerShutdown<'_> {
    /// Waits for the running answers for `grace`, and then cuts the rest. Returns how many were cut.
    pub(crate) async fn finish(self, grace: Duration) -> usize {
        self.signals.closing.cancel();
        self.stop.stopping.cancel();
        self.connections.close();
        if timeout(grace, self.ended()).await.is_ok() {
            return 0;
        }
        let cut = self.connections.len();
        self.signals.cut.cancel();
        self.background.stop();
        if timeout(CUT_WITHIN, self.ended()).await.is_err() {
            tracing::warn!(
                left = self.connections.len(),
                "connections or background responses did not end in time; Hob drops them"
            );
        }
        cut
    }

    async fn ended(&self) {
        tokio::join!(self.connections.wait(), self.background.drain());
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    const GRACE: Duration = Duration::from_secs(30);

    /// What a server with one answer of this length cuts, and how many seconds that takes.
    async fn finish(answer: Duration) -> (usize, u64) {
        let (stop, signals) = (ServerStop::default(), StopSignals::default());
        let connections = TaskTracker::new();
        connections.spawn(signals.cut.clone().run_until_cancelled_owned(sleep(answer)));
        let begun = Instant::now();
        let background = BackgroundRuns::new();
        let shutdown = ServerShutdown {
            stop: &stop,
            signals: &signals,
            connections: &connections,
            background: &background,
        };
        let cut = shutdown.finish(GRACE).await;
        assert!(signals.closing.is_cancelled() && stop.stopping.is_cancelled());
        (cut, begun.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn answers_may_end_within_the_grace_period_and_are_cut_after_it() {
        assert_eq!(finish(Duration::from_secs(20)).await, (0, 20));
        assert_eq!(finish(Duration::from_secs(40)).await, (1, 30));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_is_not_ready_before_it_accepts_nothing() {
        let (stop, shutdown) = (ServerStop::default(), CancellationToken::new());
        let delay = Duration::from_secs(5);
        assert!(timeout(delay, stop.drained(&shutdown, delay)).await.is_err());
        assert!(!stop.draining.is_cancelled());
        shutdown.cancel();
        let begun = Instant::now();
        stop.drained(&shutdown, delay).await;
        assert!(begun.elapsed() >= delay);
        assert!(stop.draining.is_cancelled() && !stop.stopping.is_cancelled());
    }
}

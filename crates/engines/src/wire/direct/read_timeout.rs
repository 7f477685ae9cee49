//! How long to wait for an engine's next bytes.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// Starts anew with each piece that comes, and costs next to nothing while they keep coming.
pub(super) struct ReadTimeout {
    limit: Duration,
    since: Instant,
    /// Set when there was nothing to read, and then left where it is until it rings.
    alarm: Option<Pin<Box<Sleep>>>,
}

impl ReadTimeout {
    pub(super) fn new(limit: Duration) -> Self {
        ReadTimeout { limit, since: Instant::now(), alarm: None }
    }

    pub(super) fn restart(&mut self) {
        self.since = Instant::now();
    }

    /// Ready when nothing came for too long.
    pub(super) fn poll_elapsed(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let deadline = self.since + self.limit;
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        loop {
            ready!(alarm.as_mut().poll(context));
            if alarm.deadline() >= deadline {
                return Poll::Ready(());
            }
            // It was set before the latest bytes came.
            alarm.as_mut().reset(deadline);
        }
    }
}

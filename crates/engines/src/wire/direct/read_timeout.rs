//! The timeout for the next bytes of a connection.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// Restarts with every read. A restart does not touch the timer, so it costs almost nothing.
pub(super) struct ReadTimeout {
    limit: Duration,
    since: Instant,
    /// Created when there was nothing to read. It is moved only when it fires.
    alarm: Option<Pin<Box<Sleep>>>,
}

impl ReadTimeout {
    pub(super) fn new(limit: Duration) -> Self {
        ReadTimeout { limit, since: Instant::now(), alarm: None }
    }

    pub(super) fn restart(&mut self) {
        self.since = Instant::now();
    }

    /// Ready when no bytes arrived in time.
    pub(super) fn poll_elapsed(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let deadline = self.since + self.limit;
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        loop {
            ready!(alarm.as_mut().poll(context));
            if alarm.deadline() >= deadline {
                return Poll::Ready(());
            }
            // The timer was set before the latest bytes arrived.
            alarm.as_mut().reset(deadline);
        }
    }
}

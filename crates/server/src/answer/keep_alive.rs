//! When a stream needs a keep-alive message, because the client has got nothing for too long. Clients, and the proxies before them, take
//! silence for a broken connection, and an engine can read a long prompt, or think unseen, for minutes.

use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

/// The longest silence.
pub(crate) const MAX_SILENCE: Duration = Duration::from_secs(15);

/// Measures silence. It looks twice in the longest one whether anything was sent, because setting a timer for every piece costs more.
#[derive(Default)]
pub(super) struct Silence {
    looks: Option<Interval>,
    /// Whether something was sent since the last look.
    is_broken: bool,
}

impl Silence {
    /// Something is sent.
    pub(super) fn end(&mut self) {
        self.is_broken = true;
    }

    /// Ready once the silence is too long. Wakes the task then.
    pub(super) fn poll_too_long(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let looks = self.looks.get_or_insert_with(|| {
            let mut looks = interval_at(Instant::now() + MAX_SILENCE / 2, MAX_SILENCE / 2);
            // While the client does not read, the body is not polled.
            looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            looks
        });
        while looks.poll_tick(context).is_ready() {
            if !std::mem::take(&mut self.is_broken) {
                return Poll::Ready(());
            }
        }
        Poll::Pending
    }
}

//! Restarts what should always run.

use std::time::Duration;

use hob_core::Backoff;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Something that is restarted whenever it ends.
pub trait Supervised: Send {
    /// Runs until it ends or `stop` is cancelled. Returns how long it was ready: after a long run the delays start again from the first.
    fn run(&mut self, stop: &CancellationToken) -> impl Future<Output = Duration> + Send;
}

/// Runs it until `stop` is cancelled, but at least once, with delays between the runs.
pub async fn supervise(mut supervised: impl Supervised, backoff: Backoff, stop: &CancellationToken) {
    let mut delays = backoff.delays();
    loop {
        delays.after_running_for(supervised.run(stop).await);
        if stop.run_until_cancelled(sleep(delays.next_delay())).await.is_none() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    struct Scripted<'a> {
        began: Instant,
        starts: &'a mut Vec<u64>,
    }

    impl Supervised for Scripted<'_> {
        async fn run(&mut self, stop: &CancellationToken) -> Duration {
            self.starts.push(self.began.elapsed().as_secs());
            match self.starts.len() {
                4 => return Duration::from_secs(600),
                6 => stop.cancel(),
                _ => {}
            }
            Duration::ZERO
        }
    }

    #[tokio::test(start_paused = true)]
    async fn delays_double_until_a_run_is_stable_and_nothing_runs_after_the_stop() {
        let backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(8) };
        let (began, mut starts) = (Instant::now(), Vec::new());
        supervise(Scripted { began, starts: &mut starts }, backoff, &CancellationToken::new()).await;
        assert_eq!(starts, [0, 1, 3, 7, 8, 10]);
        assert_eq!(began.elapsed().as_secs(), 10);
    }
}

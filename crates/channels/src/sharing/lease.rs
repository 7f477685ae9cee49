//! The lease of a channel: which process is connected to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hob_db::FailureLog;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::{ChannelSharing, SharingTimes};
use crate::blocking::blocking;
use crate::status::{CurrentStatus, StatusCell};
use crate::status_transitions::Trigger;
use crate::store::{LeaseClaim, LeaseOutcome, SharedChannelStore};
use crate::types::ChannelStatus;

/// The lease of one channel, as this process sees it.
pub(crate) struct Lease {
    sharing: ChannelSharing,
    channel: String,
    is_held: AtomicBool,
    failures: Mutex<FailureLog>,
}

impl Lease {
    pub fn new(sharing: ChannelSharing, channel: String) -> Self {
        let failures = FailureLog::new(
            "the database does not say which process is connected to a channel; Hob keeps trying",
            "the database says again which process is connected to a channel",
        );
        Lease { sharing, channel, is_held: AtomicBool::new(false), failures: Mutex::new(failures) }
    }

    pub fn store(&self) -> Arc<dyn SharedChannelStore> {
        Arc::clone(&self.sharing.store)
    }

    pub fn channel(&self) -> &str {
        &self.channel
    }

    pub fn holder(&self) -> &str {
        &self.sharing.holder
    }

    pub fn times(&self) -> SharingTimes {
        self.sharing.times
    }

    pub fn is_held(&self) -> bool {
        self.is_held.load(Ordering::Acquire)
    }

    pub fn set_held(&self, is_held: bool) {
        self.is_held.store(is_held, Ordering::Release);
    }

    /// Waits until this process has the lease, and shows the status of the one that has it meanwhile. Returns since when it has it.
    pub async fn acquire(&self, status: &StatusCell) -> Instant {
        let mut has_waited = false;
        loop {
            let asked = Instant::now();
            match self.claim(status.get()).await {
                Some(LeaseOutcome::Held) => return asked,
                Some(LeaseOutcome::HeldByOther { status: other, problem }) => {
                    if !std::mem::replace(&mut has_waited, true) {
                        tracing::info!(channel = %self.channel, "another process is connected to this channel; waiting");
                    }
                    let other = ChannelStatus::parse(&other).unwrap_or(ChannelStatus::Connecting);
                    status.mirror(CurrentStatus { status: other, problem });
                }
                None => {
                    let problem = "the database does not say which process is connected; Hob keeps trying";
                    status.problem(Trigger::Unreachable, problem);
                }
            }
            sleep(self.times().retry_every).await;
        }
    }

    /// Renews the lease. Ends when it is lost, or so long before it ends that this process can disconnect in time.
    pub async fn keep(&self, mut renewed: Instant, status: &StatusCell) {
        let SharingTimes { lease, renew_every, .. } = self.times();
        loop {
            let deadline = renewed + lease * 2 / 3;
            let pause = (Instant::now() + renew_every).min(deadline);
            sleep_until(pause).await;
            let asked = Instant::now();
            match timeout_at(deadline, self.claim(status.get())).await {
                Ok(Some(LeaseOutcome::Held)) => renewed = asked,
                Ok(Some(LeaseOutcome::HeldByOther { .. })) => {
                    tracing::warn!(
                        channel = %self.channel,
                        "another Hob took over this channel; this one disconnects, and connects again if the \
                         other ends"
                    );
                    return;
                }
                // Tried again until the deadline.
                Ok(None) if Instant::now() < deadline => {}
                Ok(None) | Err(_) => {
                    tracing::warn!(
                        channel = %self.channel,
                        "the database does not answer; this Hob disconnects the channel, so that another can \
                         connect. 'hob doctor' checks the database"
                    );
                    return;
                }
            }
        }
    }

    /// Lets another process connect at once.
    pub async fn release(&self) {
        let (store, channel, holder) = (self.store(), self.channel.clone(), self.sharing.holder.clone());
        if let Some(Err(error)) = blocking(move || store.release(&channel, &holder)).await {
            tracing::debug!(%error, "cannot give a channel back; another process takes over when the lease ends");
        }
    }

    /// `None` if the database does not answer.
    async fn claim(&self, current: CurrentStatus) -> Option<LeaseOutcome> {
        let (store, channel, holder) = (self.store(), self.channel.clone(), self.sharing.holder.clone());
        let lease = self.times().lease;
        let outcome = blocking(move || {
            store.hold(&LeaseClaim {
                channel: &channel,
                holder: &holder,
                lease,
                status: current.status.as_str(),
                problem: current.problem.as_deref(),
            })
        })
        .await?;
        let (noted, outcome) = match outcome {
            Ok(outcome) => (Ok(()), Some(outcome)),
            Err(error) => (Err(error), None),
        };
        self.failures.lock().note(&noted);
        outcome
    }
}

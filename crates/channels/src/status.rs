//! The current status of a channel, shared by its parts.

use tokio::sync::watch;

use crate::status_transitions::{Trigger, next};
use crate::types::ChannelStatus;

/// The status, and the error with its fix if there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CurrentStatus {
    pub status: ChannelStatus,
    pub problem: Option<String>,
}

/// The current status. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct StatusCell {
    now: watch::Sender<CurrentStatus>,
}

impl Default for StatusCell {
    fn default() -> Self {
        StatusCell {
            now: watch::Sender::new(CurrentStatus { status: ChannelStatus::Disconnected, problem: None }),
        }
    }
}

impl StatusCell {
    /// Handles an event that is not an error.
    pub fn note(&self, trigger: Trigger) {
        self.now.send_modify(|current| {
            current.status = next(current.status, trigger);
            // A disconnect does not clear the error: it usually explains the disconnect.
            if current.status != ChannelStatus::Error && trigger != Trigger::SaysDisconnected {
                current.problem = None;
            }
        });
    }

    /// Handles an error. Returns whether it is new, so that the same error is logged once.
    pub fn problem(&self, trigger: Trigger, reason: &str) -> bool {
        self.now.send_if_modified(|current| {
            let before = current.clone();
            *current =
                CurrentStatus { status: next(current.status, trigger), problem: Some(reason.to_owned()) };
            *current != before
        })
    }

    /// Shows the status of the process that is connected instead of this one.
    pub fn mirror(&self, other: CurrentStatus) {
        self.now.send_if_modified(|current| {
            let is_new = *current != other;
            *current = other;
            is_new
        });
    }

    pub fn get(&self) -> CurrentStatus {
        self.now.borrow().clone()
    }

    /// Waits until an attempt to connect has succeeded or failed.
    pub async fn settled(&self) -> CurrentStatus {
        let mut now = self.now.subscribe();
        match now.wait_for(|current| current.status != ChannelStatus::Connecting).await {
            Ok(current) => current.clone(),
            // Cannot happen, because `self` owns the sender.
            Err(_) => self.get(),
        }
    }
}

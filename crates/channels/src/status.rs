//! The current status of a channel, which its parts share.

use tokio::sync::watch;

use crate::status_transitions::{Trigger, next};
use crate::types::ChannelStatus;

/// The status and, if there is one, the error and its fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CurrentStatus {
    pub status: ChannelStatus,
    pub trouble: Option<String>,
}

/// The current status. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct StatusCell {
    now: watch::Sender<CurrentStatus>,
}

impl Default for StatusCell {
    fn default() -> Self {
        StatusCell {
            now: watch::Sender::new(CurrentStatus { status: ChannelStatus::Disconnected, trouble: None }),
        }
    }
}

impl StatusCell {
    /// Notes an event that is no error.
    pub fn note(&self, trigger: Trigger) {
        self.now.send_modify(|current| {
            current.status = next(current.status, trigger);
            // Not being connected is seldom the whole story; what was said before stays until it is mended.
            if current.status != ChannelStatus::Error && trigger != Trigger::SaysDisconnected {
                current.trouble = None;
            }
        });
    }

    /// Notes an error. Returns whether it is new, so that the same error is not logged again and again.
    pub fn trouble(&self, trigger: Trigger, reason: &str) -> bool {
        self.now.send_if_modified(|current| {
            let before = current.clone();
            *current =
                CurrentStatus { status: next(current.status, trigger), trouble: Some(reason.to_owned()) };
            *current != before
        })
    }

    pub fn get(&self) -> CurrentStatus {
        self.now.borrow().clone()
    }

    /// Waits until an attempt to connect has ended one way or the other.
    pub async fn settled(&self) -> CurrentStatus {
        let mut now = self.now.subscribe();
        match now.wait_for(|current| current.status != ChannelStatus::Connecting).await {
            Ok(current) => current.clone(),
            // The sender is ours, so it is there.
            Err(_) => self.get(),
        }
    }
}

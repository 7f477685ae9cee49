//! How a channel is doing right now, for everybody to see.

use tokio::sync::watch;

use crate::status_transitions::{Trigger, next};
use crate::types::ChannelStatus;

/// Status and, where something is wrong, what and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CurrentStatus {
    pub status: ChannelStatus,
    pub trouble: Option<String>,
}

/// The current stand. Clones share it.
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
    /// Takes note of something that went well, or as it was meant to.
    pub fn note(&self, trigger: Trigger) {
        self.now.send_modify(|current| {
            current.status = next(current.status, trigger);
            // Not being connected is seldom the whole story; what was said before stays until it is mended.
            if current.status != ChannelStatus::Error && trigger != Trigger::SaysDisconnected {
                current.trouble = None;
            }
        });
    }

    /// Takes note of trouble. Says whether it is news, so that the same trouble is not logged for ever.
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

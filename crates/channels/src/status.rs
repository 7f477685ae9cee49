//! How a channel is doing right now, for everybody to see.

use tokio::sync::watch;

use crate::status_transitions::{Trigger, next};
use crate::types::ChannelStatus;

/// Status and, where something is wrong, what and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stand {
    pub status: ChannelStatus,
    pub trouble: Option<String>,
}

/// The current stand. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Standing {
    now: watch::Sender<Stand>,
}

impl Default for Standing {
    fn default() -> Self {
        Standing { now: watch::Sender::new(Stand { status: ChannelStatus::Disconnected, trouble: None }) }
    }
}

impl Standing {
    /// Takes note of something that went well, or as it was meant to.
    pub fn note(&self, trigger: Trigger) {
        self.now.send_modify(|stand| {
            stand.status = next(stand.status, trigger);
            // Not being connected is seldom the whole story; what was said before stays until it is mended.
            if stand.status != ChannelStatus::Error && trigger != Trigger::SaysDisconnected {
                stand.trouble = None;
            }
        });
    }

    /// Takes note of trouble. Says whether it is news, so that the same trouble is not logged for ever.
    pub fn trouble(&self, trigger: Trigger, reason: &str) -> bool {
        self.now.send_if_modified(|stand| {
            let before = stand.clone();
            *stand = Stand { status: next(stand.status, trigger), trouble: Some(reason.to_owned()) };
            *stand != before
        })
    }

    pub fn get(&self) -> Stand {
        self.now.borrow().clone()
    }

    /// Waits until an attempt to connect has ended one way or the other.
    pub async fn settled(&self) -> Stand {
        let mut now = self.now.subscribe();
        match now.wait_for(|stand| stand.status != ChannelStatus::Connecting).await {
            Ok(stand) => stand.clone(),
            // The sender is ours, so it is there.
            Err(_) => self.get(),
        }
    }
}

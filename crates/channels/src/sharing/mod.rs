//! One of several processes is connected to a channel, and the others send through it.
//!
//! A lease in the database says which one (`lease`). Its holder listens and answers (`listener`); a process that dies stops renewing
//! it, and another takes over when it ends. A process without the lease puts its messages into the database, and the holder sends them
//! (`sender`). That a message is answered once does not depend on the lease: it is settled before it is answered, and the database lets
//! one process do that.

mod lease;
mod listener;
mod request;
mod sender;

use std::sync::Arc;
use std::time::Duration;

use hob_core::random_id;

use crate::store::SharedChannelStore;

pub(crate) use lease::Lease;
pub(crate) use listener::LeasedListener;
pub(crate) use sender::SharedSender;

/// What the processes that share a database have in common, and this process among them.
#[derive(Clone)]
pub struct ChannelSharing {
    store: Arc<dyn SharedChannelStore>,
    /// The name of this process.
    holder: String,
    times: SharingTimes,
}

impl ChannelSharing {
    pub fn new(store: Arc<dyn SharedChannelStore>) -> Self {
        ChannelSharing::with_times(store, SharingTimes::default())
    }

    pub fn with_times(store: Arc<dyn SharedChannelStore>, times: SharingTimes) -> Self {
        let holder = random_id(&format!("process-{}-", std::process::id()));
        ChannelSharing { store, holder, times }
    }
}

/// How long processes wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharingTimes {
    /// A process that is gone for this time loses its channels. It disconnects after two thirds of it without an answer of the
    /// database, so that it is gone before another connects.
    pub lease: Duration,
    pub renew_every: Duration,
    /// How often a process without the lease asks for it.
    pub retry_every: Duration,
    /// How long a message waits for a process that is connected.
    pub taken_within: Duration,
    /// How long such a process has to send it.
    pub answered_within: Duration,
}

impl Default for SharingTimes {
    fn default() -> Self {
        SharingTimes {
            lease: Duration::from_secs(6),
            renew_every: Duration::from_millis(1_500),
            retry_every: Duration::from_secs(1),
            // A little longer than a takeover. Both together are less than the tool that sends may take.
            taken_within: Duration::from_secs(15),
            answered_within: Duration::from_secs(40),
        }
    }
}

//! What the parts of a connection share: timeouts, limits, and when the gateway last answered.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::pending::Pending;

/// Longer frames are skipped.
pub(super) const MAX_FRAME_BYTES: usize = 1 << 20;

/// The id of the request for the events of messages.
pub(super) const SUBSCRIPTION: &str = "subscribe";

/// How long a connection waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatewayTimeouts {
    /// The longest wait for the socket to open, and for the answer to the authentication.
    pub open_within: Duration,
    /// A gateway that is silent for this long after the socket opened uses the simple protocol.
    pub detect_within: Duration,
    /// The longest wait to write a frame.
    pub write_within: Duration,
    /// The longest wait for the confirmation of a message.
    pub confirm_within: Duration,
    /// The interval between two pings.
    pub ping_every: Duration,
    /// A gateway that sent nothing for this long counts as lost.
    pub silent_for: Duration,
}

impl Default for GatewayTimeouts {
    fn default() -> Self {
        GatewayTimeouts {
            open_within: Duration::from_secs(10),
            detect_within: Duration::from_millis(1_500),
            write_within: Duration::from_secs(10),
            confirm_within: Duration::from_secs(20),
            ping_every: Duration::from_secs(20),
            silent_for: Duration::from_secs(50),
        }
    }
}

pub(super) struct Shared {
    pub pending: Pending,
    /// When the gateway last sent anything.
    last_activity: Mutex<Instant>,
}

impl Shared {
    pub fn new() -> Self {
        Shared { pending: Pending::default(), last_activity: Mutex::new(Instant::now()) }
    }

    pub fn mark_activity(&self) {
        *self.last_activity.lock() = Instant::now();
    }

    pub fn silent_for(&self) -> Duration {
        self.last_activity.lock().elapsed()
    }
}

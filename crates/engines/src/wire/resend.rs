//! When a request whose answer was lost is sent again.

use std::time::Duration;

/// If a connection ends this soon after a request, without a byte of a response, the engine most likely closed it
/// while it was idle, and the request crossed with the close. An engine that reads a request answers it or works on
/// it. If a second request costs only time, the request is sent again, as browsers and nginx do.
///
/// llama.cpp's server closes a kept connection whenever a request for a whole answer follows a stream on it.
pub(super) const CLOSED_WHILE_IDLE: Duration = Duration::from_secs(2);

/// Whether a request may be sent again after its answer was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resend {
    /// A second request costs only time, as on the user's own server.
    Unanswered,
    /// The first request may have been charged already, as behind a proxy to the cloud.
    Never,
}

//! Failures of the transport.

use hob_net::root_cause;

/// Why a request or the reading of its response failed.
#[derive(Debug)]
pub enum TransportError {
    /// No bytes arrived in time.
    TimedOut,
    /// There was no connection, so no part of the request was sent. With the reason from the transport.
    NotSent(String),
    /// The connection ended after the request, or a part of it, may have been sent. With the reason from the
    /// transport.
    MaybeSent(String),
}

impl From<reqwest::Error> for TransportError {
    fn from(error: reqwest::Error) -> Self {
        // A failed connection attempt is not a slow answer.
        if error.is_connect() {
            TransportError::NotSent(root_cause(&error))
        } else if error.is_timeout() {
            TransportError::TimedOut
        } else {
            TransportError::MaybeSent(root_cause(&error))
        }
    }
}

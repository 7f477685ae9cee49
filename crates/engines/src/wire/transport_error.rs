//! How a request or its answer fails on the way.

use hob_net::root_cause;

/// How a connection fails.
#[derive(Debug)]
pub enum TransportError {
    /// Nothing came for too long.
    TimedOut,
    /// There was no connection, so nothing of the question went out. In the words of the transport, as below.
    NotSent(String),
    /// The connection ended when the question, or a part of it, may have gone out.
    MaybeSent(String),
}

impl From<reqwest::Error> for TransportError {
    fn from(error: reqwest::Error) -> Self {
        // A connection that nobody takes is not a slow answer.
        if error.is_connect() {
            TransportError::NotSent(root_cause(&error))
        } else if error.is_timeout() {
            TransportError::TimedOut
        } else {
            TransportError::MaybeSent(root_cause(&error))
        }
    }
}

//! Failures of the transport.

use hob_core::UnreachableReason;
use hob_net::{is_bad_certificate, root_cause};

/// Why a request or the reading of its response failed.
#[derive(Debug)]
pub enum TransportError {
    /// No bytes arrived in time.
    TimedOut,
    /// There was no connection, so no part of the request was sent. With the reason from the transport.
    NotSent(UnreachableReason),
    /// The connection ended after the request, or a part of it, may have been sent. With the reason from the
    /// transport.
    MaybeSent(String),
}

impl From<reqwest::Error> for TransportError {
    fn from(error: reqwest::Error) -> Self {
        // A failed connection attempt is not a slow answer.
        if error.is_connect() {
            let reason = root_cause(&error);
            TransportError::NotSent(match is_bad_certificate(&error) {
                true => UnreachableReason::BadCertificate(reason),
                false => UnreachableReason::NoConnection(reason),
            })
        } else if error.is_timeout() {
            TransportError::TimedOut
        } else {
            TransportError::MaybeSent(root_cause(&error))
        }
    }
}

//! Why the newest release is not known.

use std::time::Duration;

use thiserror::Error;

/// All causes are texts, so that an error can be shown more than once.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
pub enum UpdateError {
    #[error("'{address}' is no address of a release: {reason}. Use an http or https address")]
    BadAddress { address: String, reason: String },

    #[error("cannot read {address}: {reason}. Check the address and the network")]
    Unreachable { address: String, reason: String },

    #[error("{address} did not answer within {} s. Try again later", limit.as_secs())]
    Timeout { address: String, limit: Duration },

    #[error("{address} answered {status}. Check that it is the address of a release")]
    Status { address: String, status: u16 },

    #[error("{address} redirects to '{target}', which is not followed: {reason}")]
    Redirect { address: String, target: String, reason: &'static str },

    #[error("{address} is larger than {limit} bytes, so it is no list of a release")]
    TooLarge { address: String, limit: usize },

    #[error("{address} is no list of a release: {reason}")]
    Malformed { address: String, reason: String },
}

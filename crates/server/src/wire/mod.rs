//! The shapes of requests and answers on our HTTP API.

pub(crate) mod content;
mod explain;
pub(crate) mod message;
pub(crate) mod request;
pub(crate) mod response;
pub(crate) mod tools;

//! The shapes of requests and answers on our HTTP API.

pub(crate) mod content;
pub(crate) mod embeddings;
pub(crate) mod exposition;
pub(crate) mod ignored;
pub(crate) mod message;
pub(crate) mod read;
pub(crate) mod request;
pub(crate) mod response;
pub(crate) mod tools;
mod values;
pub(crate) mod whole;

//! The gateway: its two protocols over one WebSocket, and its HTTP API.

pub(crate) mod address;
pub(crate) mod client;
pub(crate) mod connection;
mod frames;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod handle;
mod http;
mod openclaw;
mod pending;
mod reader;
pub(crate) mod sender;
pub(crate) mod shared;
mod socket;
mod writer;

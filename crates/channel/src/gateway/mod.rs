//! The gateway: its two protocols over one WebSocket, and its HTTP side.

pub(crate) mod address;
pub(crate) mod connection;
mod frames;
mod http;
mod openclaw;
pub(crate) mod outlet;
mod pending;
mod reader;
mod socket;
mod wire;
mod writer;

//! How bytes travel between us and an engine: the HTTP client, the framing of streams, and the step from frames to deltas.
//! Knows no provider.

pub mod client;
pub mod deltas;
mod direct;
pub mod frames;
pub mod response;
pub mod sse;

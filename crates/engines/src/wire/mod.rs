//! The transport between Hob and an engine: the HTTP client, the framing of streams, and the decoding of frames into
//! deltas. Knows no provider.

pub mod client;
mod direct;
pub(crate) mod error_response;
pub mod frames;
pub(crate) mod remote;
pub(crate) mod resend;
pub mod response;
pub mod sse;
pub mod stream_decoder;
pub(crate) mod token_count;
pub mod transport_error;
pub(crate) mod unsupported_field;

#[cfg(fuzzing)]
pub(crate) use direct::fuzzing as direct_fuzzing;

//! The HTTP API. The only crate that knows how HTTP is served; it answers by asking [`hob_system::System`].

mod admission;
mod body;
mod error;
mod gate;
mod listen;
mod metrics;
mod pulse;
mod router;
mod routes;
mod sse;
mod trace;
mod trust;
mod wire;

pub use listen::{ServeError, Server};
pub use router::ServerParts;

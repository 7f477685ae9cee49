//! The HTTP API. The only crate that knows how HTTP is served; it answers by asking [`hob_system::System`].

mod admission;
mod body;
mod door;
mod error;
mod gate;
mod hands;
mod listen;
mod metrics;
mod page;
mod pulse;
mod router;
mod routes;
mod sse;
mod trace;
mod trust;
mod wire;

pub use listen::{ServeError, Server, Stopped};
pub use router::ServerParts;

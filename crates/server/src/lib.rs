//! The HTTP API. The only crate that knows how HTTP is served; it answers by asking [`hob_system::System`].

mod admission;
mod body;
mod door;
mod error;
mod gate;
mod hands;
mod listen;
mod metrics;
mod open_files;
mod page;
mod pulse;
mod refusal;
mod room;
mod router;
mod routes;
mod signposts;
mod sse;
mod trace;
mod trust;
mod wire;

pub use listen::{ServeError, Server, Stopped};
pub use open_files::raise_open_files;
pub use router::ServerParts;

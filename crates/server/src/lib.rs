//! The HTTP API. The only crate that knows how HTTP is served; it answers by asking [`hob_system::System`].

mod admission;
mod blocking;
mod body;
mod connection;
mod door;
mod error;
mod gate;
mod hands;
mod key_backoff;
mod listen;
mod log_limit;
mod metrics;
mod open_files;
mod page;
mod peer;
mod pulse;
mod refusal;
mod reload;
mod request_context;
mod request_id;
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
pub use reload::{RELOADED_KEYS, ServerControl};
pub use router::ServerParts;

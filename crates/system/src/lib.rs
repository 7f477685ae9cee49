//! The one way through the house: server, command line, channels and scheduler all ask here.
//!
//! Knows no HTTP server and no terminal. Wires engines, agents and the list of models together.

mod catalog;
mod lane;
mod system;

pub use lane::{Delivery, Lane, lane};
pub use system::{Streaming, System, SystemParts};

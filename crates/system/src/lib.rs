//! The one way through the house: server, command line, channels and scheduler all ask here.
//!
//! Knows no HTTP server and no terminal. Wires engines, agents and the list of models together.

mod catalog;
mod engines;
mod household;
mod lane;
mod system;

pub use engines::{engines, ollama};
pub use hob_engine::ollama::{ModelDetails, PullProgress};
pub use hob_engine::select::{Because, BindAddress, Chosen, NoEngine, Tried, WhyNot, is_own_address, probe_all};
pub use household::{Household, OpenError, Wishes, choose};
pub use lane::{Delivery, Lane, lane};
pub use system::{Streaming, System, SystemParts};

//! Agents and the tools they use.
//!
//! Reaches engines, memory, tasks and channels only through the contracts of `core`. Knows no HTTP server, no database and no
//! configuration file.

pub mod mcp;
pub mod routing;
pub mod sandbox;
pub mod tools;

mod agents;
mod toolbox;

pub use agents::{AGENT_ALIASES, AGENTS, agent};
pub use hob_core::Permit;
pub use toolbox::{AllowedAfterUntrusted, RunTools, ToolBox, ToolBoxError};

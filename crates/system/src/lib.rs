//! The one way through the house: server, command line, channels and scheduler all ask here.
//!
//! Knows no HTTP server and no terminal. Wires engines, agents and the list of models together.

pub mod bench;
mod caller_policy;
mod databases;
mod default_model;
mod embedder;
mod engines;
#[cfg(test)]
mod fallback_tests;
mod feedback;
#[cfg(test)]
mod hostile_tests;
mod household;
mod images;
mod lane;
pub mod local_models;
#[cfg(test)]
mod prompt_size_tests;
mod route;
#[cfg(test)]
mod routing_tests;
pub mod startup;
mod system;
#[cfg(test)]
mod task_tests;
#[cfg(test)]
mod trace_tests;
mod workshop;

pub use databases::{
    DatabaseKind, DatabaseReport, HOB_MIGRATIONS, MEMORY_MIGRATIONS, hob_database, inspect_databases,
};
pub use default_model::default_model;
pub use embedder::{Embedder, EmbedderError, embedder, open_embedder};
pub use engines::{beside, engines, ollama};
pub use feedback::{FeedbackService, RatableAnswer, RateError, RatingResult};
pub use hob_agents::{ToolSet, ToolSetError};
pub use hob_engines::ollama::{ModelDetails, OllamaPullProgress};
pub use hob_engines::selection::{
    NoEngine, RejectedEngine, RejectionReason, SelectedEngine, SelectionReason, points_to_self, probe_all,
};
pub use hob_engines::{EnginePool, Fallback, ManagedError};
pub use hob_mcp::{McpServerStatus, McpState, WithheldTool};
pub use household::{FirstRun, Household, OpenError, Wishes, choose, is_default_missed};
pub use images::ImageFetcher;
pub use lane::{Lane, Wish, lane};
pub use system::{Streaming, System, SystemParts};
pub use workshop::{Workshop, WorkshopError, WorkshopParts, accept_mcp_tools, check_sandbox, serve_mcp};

//! Connects the capabilities, and answers requests: the server, the command line, channels and the scheduler all use it.
//!
//! Knows no HTTP server and no terminal.

mod app;
mod ask;
mod audited_tools;
mod channel_opener;
mod databases;
mod embedded_engine;
#[cfg(test)]
mod fallback_tests;
mod feedback;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod key_tests;
mod model_library;
#[cfg(test)]
mod prompt_size_tests;
mod recorded_calls;
#[cfg(test)]
mod routing_tests;
mod service_slot;
mod source_opener;
#[cfg(test)]
mod source_tests;
pub mod startup;
#[cfg(test)]
mod task_tests;
mod tool_registry;
#[cfg(test)]
mod trace_tests;

pub use app::{App, AppOptions, OpenError, is_default_missed};
pub use ask::default_model::default_model;
pub use ask::documents::{DocumentReader, FileText};
pub use ask::images::{ImageFetcher, picture_url};
pub use ask::{
    AnswerStream, AskService, AskServiceParts, LlmTarget, MediaAnswered, ModelAliases, TokenCount,
};
pub use channel_opener::{ChannelOpener, PreparedChannels};
pub use databases::{
    DatabaseKind, DatabaseReport, Databases, FileReport, HOB_MIGRATIONS, MEMORY_MIGRATIONS,
    POSTGRES_MIGRATIONS, ServerReport, StorageError, hob_database, inspect_databases, postgres_options,
};
pub use embedded_engine::{
    EmbeddedEngine, EmbeddedEngineParts, EmbeddedEngineState, LoadedEngine, SelectEngineFn,
};
pub use feedback::{FeedbackService, RatableAnswer, RateError, RatingResult};
pub use model_library::{
    HubSearch, LibraryError, LibraryFailure, ModelLibrary, ModelSearch, PullStep, PullSteps, is_pulled_by_hob,
};
pub use service_slot::{ChannelSlot, ServiceSlot};
pub use source_opener::SourceOpener;
pub use startup::backup::{backup_service, state_files};
pub use startup::embedder::{EmbedderError, embedder, open_embedder};
pub use startup::engines::{beside, choose, engines, ollama, running_server};
pub use startup::local_models::FirstRun;
pub use tool_registry::{
    ToolRegistry, ToolRegistryError, ToolRegistryParts, accept_mcp_tools, check_sandbox, serve_mcp,
};

//! Connects the capabilities, and answers requests: the server, the command line, channels and the scheduler all use it.
//!
//! Knows no HTTP server and no terminal.

mod app;
mod ask;
mod audited_tools;
mod backup;
pub mod bench;
mod channel_opener;
mod database_copy;
mod database_monitor;
mod databases;
mod embedded_engine;
mod engine_wait;
#[cfg(test)]
mod fallback_tests;
mod feedback;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod key_tests;
mod model_library;
mod model_search;
#[cfg(test)]
mod prompt_size_tests;
mod readiness;
mod recorded_calls;
mod restored_uploads;
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
    AnswerStream, AskService, AskServiceParts, LlmTarget, MediaAnswered, ModelAliases, ModelInMemory,
    Reranked, TextRequest, TokenCount,
};
pub use backup::{
    BackupError, BackupFile, BackupManifest, OpenedBackup, Replace, Restored, back_up, open_backup, restore,
};
pub use channel_opener::{ChannelOpener, PreparedChannels};
pub use database_copy::{
    CopyListener, StateCopyError, StateLocation, copy_state, hob_copy_tables, memory_copy_tables,
};
pub use databases::{
    DatabaseKind, DatabaseReport, Databases, FileReport, HOB_MIGRATIONS, MEMORY_MIGRATIONS,
    POSTGRES_MIGRATIONS, ServerReport, StorageError, hob_database, inspect_databases, postgres_options,
};
pub use embedded_engine::{
    EmbeddedEngine, EmbeddedEngineParts, EmbeddedEngineState, LoadedEngine, SelectEngineFn,
};
pub use feedback::{FeedbackService, RatableAnswer, RateError, RatingResult};
pub use model_library::{
    LibraryError, LibraryFailure, ModelLibrary, PullStep, PullSteps, is_pulled_by_hob, is_short_name,
};
pub use model_search::{BuiltInModel, HubSearch, ModelSearch};
pub use readiness::ReadinessCheck;
pub use service_slot::{ChannelSlot, ServiceSlot};
pub use source_opener::SourceOpener;
pub use startup::embedder::{EmbedderError, embedder, open_embedder};
pub use startup::engines::{beside, choose, engines, ollama, running_server};
pub use startup::local_models::FirstRun;
pub use tool_registry::{
    ToolRegistry, ToolRegistryError, ToolRegistryParts, accept_mcp_tools, check_sandbox, serve_mcp,
};

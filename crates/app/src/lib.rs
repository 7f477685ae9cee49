//! Connects the capabilities, and answers requests: the server, the command line, channels and the scheduler all use it.
//!
//! Knows no HTTP server and no terminal.

mod app;
mod ask;
mod channel_opener;
mod databases;
mod embedded_engine;
#[cfg(test)]
mod fallback_tests;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod key_tests;
mod model_management;
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
pub use ask::attached_files::DocumentReader;
pub use ask::{AnswerStream, AskService, AskServiceParts, MediaAnswered, TokenCount};
pub use channel_opener::{ChannelOpener, PreparedChannels};
pub use databases::{
    Databases, HOB_MIGRATIONS, MEMORY_DATABASE, MEMORY_MIGRATIONS, POSTGRES_MIGRATIONS, StorageError,
    hob_database, postgres_options,
};
pub use embedded_engine::{
    EmbeddedEngine, EmbeddedEngineParts, EmbeddedEngineState, LoadedEngine, SelectEngineFn,
};
pub use model_management::{ModelManagement, ModelManagementError, PullSteps};
pub use service_slot::{ChannelSlot, ServiceSlot};
pub use source_opener::SourceOpener;
pub use startup::backup::{backup_service, state_files};
pub use startup::engines::{beside, choose, default_model, engines, ollama, running_server};
pub use tool_registry::{
    ToolRegistry, ToolRegistryError, ToolRegistryParts, accept_mcp_tools, check_sandbox, serve_mcp,
};

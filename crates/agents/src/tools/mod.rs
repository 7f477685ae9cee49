//! The set of all tools, the tools of one run, and the one place that runs a call.
//!
//! Knows no tool in particular, and no agent.

#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod loop_guard;
mod schema_check;
mod short_schema;
mod taint;
mod tool_runner;
mod tool_set;
mod truncate;

pub use taint::AllowedAfterUntrusted;
pub use tool_runner::PermittedTools;
pub use tool_set::{ToolSet, ToolSetError};

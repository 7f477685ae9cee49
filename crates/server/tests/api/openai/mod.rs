//! OpenAI's API: chat completions, embeddings, models.

mod agents;
mod cancellation;
mod chat;
mod completions;
mod documents;
mod embedded_cancellation;
mod embeddings;
mod engine_pool;
mod fields;
mod legacy_functions;
mod media;
mod models;
mod recorded_tool_calls;
mod rerank;
pub mod routing;
mod tokenize;

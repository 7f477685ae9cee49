//! Engines: everything that answers from outside this process.
//!
//! The only crate that knows providers' wire formats. Knows nothing of agents, of serving HTTP, or of `config.toml`: an
//! engine gets its own small options struct.

pub mod chat_completions;
pub mod openai_compat;
pub mod wire;

pub use openai_compat::{OpenAiCompat, Style};
pub use wire::client::{Endpoint, EndpointOptions};

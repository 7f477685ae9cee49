//! Engines: everything that answers from outside this process.
//!
//! The only crate that knows providers' wire formats. Knows nothing of agents, of serving HTTP, or of `config.toml`: an
//! engine gets its own small options struct.

#[cfg(feature = "cloud")]
pub mod cloud;
mod embeddings;
mod health_cache;
pub mod managed;
pub mod multi_host;
pub mod ollama;
pub mod openai_compat;
pub mod selection;
pub mod wire;

#[cfg(feature = "cloud")]
pub use cloud::{Cloud, CloudOptions, Provider};
pub use health_cache::HealthCache;
pub use managed::{ManagedError, ManagedOptions, ManagedServer};
pub use multi_host::{MultiHost, MultiHostOptions};
pub use ollama::Ollama;
pub use openai_compat::{OpenAiCompat, Style};
pub use wire::client::{Endpoint, EndpointOptions};
pub use wire::remote::Resend;

//! The engines that run outside this process, and the choice among them.
//!
//! `ollama`, `openai_compat` and `cloud` speak the wire formats of providers; no other crate knows these. `managed`
//! starts a llama.cpp server. `multi_host` joins several servers of one engine. `selection` chooses the engine at
//! startup, `pool` the engine that has a model, and `fallback` answers with another model if the default one is not
//! available. `health_cache` keeps the latest health of every engine. `hints` says which wishes of a caller each engine can follow.
//!
//! Knows nothing of agents, of serving HTTP, or of `config.toml`: each engine takes an options struct.

#[cfg(feature = "cloud")]
pub mod cloud;
mod embeddings;
pub mod fallback;
#[cfg(fuzzing)]
pub mod fuzzing;
mod health_cache;
pub mod hints;
pub mod managed;
pub mod model_list_cache;
pub mod multi_host;
mod multiple_choices;
pub mod ollama;
pub mod openai_compat;
pub mod pool;
pub mod selection;
pub mod wire;

#[cfg(feature = "cloud")]
pub use cloud::{Cloud, CloudOptions, Provider};
pub use fallback::Fallback;
pub use health_cache::{EngineHosts, HealthCache};
pub use managed::{ManagedError, ManagedOptions, ManagedServer};
pub use multi_host::{DiscoveryOptions, FoundHost, MakeHost, MultiHost, MultiHostOptions, RefreshTimes};
pub use ollama::Ollama;
pub use openai_compat::{OpenAiCompat, Style};
pub use pool::EnginePool;
pub use wire::client::{Endpoint, EndpointOptions};
pub use wire::resend::Resend;

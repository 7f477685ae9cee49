//! The engines that run outside this process, and the choice among them.
//!
//! `ollama`, `openai_compat` and `cloud` speak the wire formats of providers; no other crate knows these. `managed` starts a llama.cpp
//! server. `multi_host` joins several servers of one engine.
//!
//! `selection` chooses the engine at startup, `pool` the engine that has a model, and `fallback` answers with another model if the default
//! one is not available. `request_target` is what they chose for one request. `default_model` is the model that `default` means, and
//! `model_aliases` are names that mean other models.
//!
//! `hints` says which wishes of a caller each engine can follow, and `length_retry` asks again without a limit that an engine refused.
//! `text_completion` continues several texts on any engine, `reranking` orders documents by their vectors where an engine cannot rerank,
//! `transcription` is the request for the words of a recording, and `warming_engine` only processes prompts.
//!
//! `health_cache` keeps the latest health of every engine, `model_descriptions` what they report for single models, `models_in_memory`
//! what they have loaded, and `engine_wait` waits for the first answer.
//!
//! Knows nothing of agents, of serving HTTP, or of `config.toml`: each engine takes an options struct.

#[cfg(feature = "cloud")]
pub mod cloud;
mod default_model;
mod embeddings;
mod engine_wait;
pub mod fallback;
#[cfg(fuzzing)]
pub mod fuzzing;
mod health_cache;
pub mod hints;
mod length_retry;
pub mod managed;
mod model_aliases;
mod model_descriptions;
pub mod model_list_cache;
mod models_in_memory;
pub mod multi_host;
mod multiple_choices;
pub mod ollama;
pub mod openai_compat;
pub mod pool;
mod request_target;
mod reranking;
pub mod selection;
pub mod text_completion;
pub mod transcription;
mod warming_engine;
pub mod wire;

#[cfg(feature = "cloud")]
pub use cloud::{Cloud, CloudOptions, Provider};
pub use default_model::DefaultModel;
pub use engine_wait::EngineWait;
pub use fallback::Fallback;
pub use health_cache::{EngineHosts, HealthCache};
pub use length_retry::with_soft_limit;
pub use managed::{ManagedError, ManagedOptions, ManagedServer};
pub use model_aliases::{ModelAliases, explain_missing};
pub use model_descriptions::ModelDescriptions;
pub use models_in_memory::ModelInMemory;
pub use multi_host::served::ServedHosts;
pub use multi_host::{DiscoveryOptions, FoundHost, MakeHost, MultiHost, MultiHostOptions, RefreshTimes};
pub use ollama::Ollama;
pub use openai_compat::{OpenAiCompat, Style};
pub use pool::EnginePool;
pub use request_target::{AnswerNotes, RequestTarget};
pub use reranking::{Reranked, rerank};
pub use warming_engine::WarmingEngine;
pub use wire::client::{Endpoint, EndpointOptions};
pub use wire::resend::Resend;

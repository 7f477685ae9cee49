//! llama.cpp inside the process: model files, and an engine that answers from them.
//!
//! Knows nothing of HTTP, of configuration files or of the other engines.

mod clock;
mod constraint;
mod control;
mod embed;
mod engine;
mod error;
mod grammar;
mod grammar_thread;
mod job;
mod loaded;
mod log;
mod logprobs;
pub mod models;
mod options;
#[cfg(target_os = "linux")]
mod pages;
mod plan;
mod prompt;
mod quantize;
mod registry;
mod request;
mod sampler;
mod schema;
mod sequence;
mod slots;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod spin;
mod stops;
mod template;
mod texts;
mod thoughts;
mod tool_parser;
mod tools;
mod tune;
mod tuning_call;
mod tuning_chore;
mod utf8;
mod worker;
mod writer;

pub use engine::Embedded;
pub use options::{EmbeddedOptions, TuneWhenIdle};
#[cfg(target_os = "linux")]
pub use pages::give_back_start;
pub use tune::{Keep, Measured, QualityCost, TuneReport};

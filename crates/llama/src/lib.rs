//! llama.cpp in the process: an engine for model files.
//!
//! Uses the directory of model files in `hob-models`. Knows nothing of HTTP, `config.toml` or other engines. The only crate with
//! `unsafe` code.

mod backends;
mod batching;
mod cache_entry;
mod card_eviction;
mod cards;
mod chat;
mod chat_input;
mod compute_units;
mod constraint;
mod context_memory;
mod context_size;
mod control_tokens;
mod draft;
mod embed;
mod embedding_input;
mod engine;
mod error;
#[cfg(test)]
mod fixtures;
#[cfg(fuzzing)]
pub mod fuzzing;
mod gpu_layers;
mod grammar;
mod grammar_thread;
mod guess_length;
mod job;
mod kv_state;
mod load_queue;
mod loaded_model;
mod loading;
mod log;
mod logprobs;
mod mapped_pages;
mod media;
mod model_cache;
mod model_files;
mod model_memory;
mod model_thread;
mod options;
mod placement;
mod prefix_cache;
mod prefix_store;
mod prompt;
mod prompt_lookup;
mod prompt_scores;
mod quantize;
mod question;
mod request;
mod rerank;
mod sampler;
mod sampling_threads;
mod saved_prompts;
mod schema;
mod sequence;
mod stops;
mod token_choice;
mod tokens;
mod tune;
mod utf8;
mod vector_context;
mod writer;

pub use engine::LlamaEngine;
pub use options::{DraftOptions, DraftUse, FlashAttention, GpuLayers, LlamaOptions, PrefixStoreOptions};

//! The HTTP API. The only crate that knows how HTTP is served. Handlers get their answers from [`hob_app::AskService`].

mod admin;
mod answer;
mod anthropic;
mod blocking_pool;
mod caller;
mod connection;
mod content_type;
mod cors;
mod error;
mod guard;
mod json;
mod limits;
mod listen;
mod ollama;
mod open_files;
mod openai;
mod pages;
mod pipeline;
mod reload;
mod request_context;
mod request_id;
mod request_metrics;
mod responses;
mod route_suggestions;
mod router;
mod state;
mod traceparent;
mod turns;
mod unix_time;
mod warning_header;
mod whole_number;
mod worker_threads;

pub use listen::{ServeError, Server, Stopped};
pub use open_files::raise_open_files;
pub use reload::{RELOADED_KEYS, ServerControl};
pub use state::ServerParts;

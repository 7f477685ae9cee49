//! OpenAI's API: chat completions, embeddings and models. Translates between its wire format and the types of `hob_core`; knows
//! nothing of engines or agents.

pub(crate) mod chat;
mod chat_request;
mod chat_response;
mod content;
pub(crate) mod embeddings;
mod embeddings_body;
mod ignored_fields;
mod message;
pub(crate) mod models;
mod sse;
mod tools;

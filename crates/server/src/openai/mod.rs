//! OpenAI's API: chat completions, embeddings and models. Translates between its wire format and the types of `hob_core`; knows
//! nothing of engines or agents.

pub(crate) mod chat;
mod chat_chunks;
mod chat_extras;
pub(crate) mod chat_request;
mod chat_response;
mod chunk_head;
pub(crate) mod completions;
mod completions_request;
mod completions_response;
pub(crate) mod content;
pub(crate) mod embeddings;
mod embeddings_body;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
pub(crate) mod ignored_fields;
pub(crate) mod media;
mod message;
pub(crate) mod models;
mod multipart;
pub(crate) mod rerank;
mod text_chunks;
pub(crate) mod tokenize;
pub(crate) mod tools;

use crate::error::{ApiError, ApiResult};

/// The required field `model`.
pub(crate) fn required_model(model: Option<String>) -> ApiResult<String> {
    let named = model.filter(|model| !model.trim().is_empty());
    named.ok_or_else(|| ApiError::invalid("model", "'model' is required: the id of a model, or 'default'"))
}

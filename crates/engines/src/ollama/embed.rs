//! `POST /api/embed`.

use std::time::Duration;

use hob_core::{EmbedRequest, Overlong};
use serde::{Deserialize, Serialize};

use crate::embeddings::EmbeddingBatch;
use crate::wire::token_count;

#[derive(Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    input: &'a [String],
    /// Ollama truncates silently by default.
    truncate: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    dimensions: Option<u32>,
}

impl<'a> Body<'a> {
    pub(super) fn of(request: &'a EmbedRequest, inputs: &'a [String]) -> Self {
        Body {
            model: &request.model,
            input: inputs,
            truncate: request.overlong == Overlong::Cut,
            dimensions: request.dimensions,
        }
    }
}

#[derive(Deserialize)]
struct Answer {
    model: Option<String>,
    embeddings: Vec<Vec<f32>>,
    #[serde(default, deserialize_with = "token_count::optional")]
    prompt_eval_count: Option<u64>,
    #[serde(default, deserialize_with = "token_count::optional")]
    load_duration: Option<u64>,
}

pub(super) fn read(body: &[u8]) -> Result<EmbeddingBatch, String> {
    let answer: Answer = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    Ok(EmbeddingBatch {
        model: answer.model,
        vectors: answer.embeddings,
        prompt_tokens: answer.prompt_eval_count,
        load_time: answer.load_duration.map(Duration::from_nanos),
    })
}

//! `batchEmbedContents`.

use hob_core::EmbedRequest;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::embeddings::EmbeddingBatch;

/// Google's limit for one request.
pub(super) const MAX_INPUTS: usize = 100;

pub(super) fn body(request: &EmbedRequest, inputs: &[String]) -> Value {
    let name = request.model.strip_prefix("models/").unwrap_or(&request.model);
    let one = |text: &String| {
        let mut one =
            json!({ "model": format!("models/{name}"), "content": { "parts": [{ "text": text }] } });
        if let Some(dimensions) = request.dimensions {
            one["outputDimensionality"] = dimensions.into();
        }
        one
    };
    json!({ "requests": inputs.iter().map(one).collect::<Vec<_>>() })
}

#[derive(Deserialize)]
struct Answer {
    embeddings: Vec<Values>,
}

#[derive(Deserialize)]
struct Values {
    values: Vec<f32>,
}

/// Google's answer has no token count.
pub(super) fn read(body: &[u8]) -> Result<EmbeddingBatch, String> {
    let answer: Answer = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let vectors = answer.embeddings.into_iter().map(|one| one.values).collect();
    Ok(EmbeddingBatch { model: None, vectors, prompt_tokens: None, load_time: None })
}

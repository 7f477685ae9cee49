//! The complete answer. Google streams an answer as several objects of the type that it sends once for a complete
//! answer, so the decoder of the stream reads both.

use std::collections::VecDeque;

use hob_core::{Collector, GenerateRequest, Generation, ModelCapabilities, ModelInfo};
use serde::Deserialize;

use super::events::GeminiDecoder;
use super::wire_types::WireAnswer;
use crate::wire::stream_decoder::{DecodeError, Decoder};

/// Reads a complete answer.
pub(super) fn read(body: &[u8], request: &GenerateRequest) -> Result<Generation, DecodeError> {
    let mut answer: WireAnswer =
        serde_json::from_slice(body).map_err(|error| DecodeError::unreadable(body, error.to_string()))?;
    let model = answer.model_version.take();
    let mut chunks = GeminiDecoder::new(request);
    let mut deltas = VecDeque::new();
    chunks.take(answer, &mut deltas)?;
    let unfinished = || DecodeError::Malformed("no candidate has a finish reason".to_owned());
    chunks.end(&mut deltas).map_err(|_| unfinished())?;
    let mut collector = Collector::default();
    deltas.into_iter().for_each(|delta| collector.push(delta));
    collector.finish(model.unwrap_or_else(|| request.model.clone())).ok_or_else(unfinished)
}

#[derive(Deserialize)]
struct ModelList {
    #[serde(default)]
    models: Vec<WireModel>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireModel {
    name: String,
    input_token_limit: Option<u64>,
    #[serde(default)]
    supported_generation_methods: Vec<String>,
    thinking: Option<bool>,
}

/// Reads `GET /v1beta/models` and keeps the models that generate text. Others make embeddings, images or speech.
pub(super) fn read_models(body: &[u8]) -> Result<Vec<ModelInfo>, String> {
    let list: ModelList = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let answers = |model: &WireModel| {
        let methods = &model.supported_generation_methods;
        methods.iter().any(|method| method == "generateContent")
    };
    let info = |model: WireModel| ModelInfo {
        context: model.input_token_limit,
        capabilities: ModelCapabilities { reasoning: model.thinking, ..ModelCapabilities::default() },
        ..ModelInfo::named(model.name.strip_prefix("models/").unwrap_or(&model.name))
    };
    Ok(list.models.into_iter().filter(answers).map(info).collect())
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;

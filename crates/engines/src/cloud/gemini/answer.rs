//! The answer. Google streams it as several of what it sends whole as one, so both are read by the same hand.

use std::collections::VecDeque;

use hob_core::{Collector, FinishReason, Generation, ModelInfo, Usage};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::events::Chunks;
use crate::wire::deltas::{DecodeError, Decoder};

/// The whole answer, or the next piece of it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WireAnswer {
    #[serde(default)]
    pub candidates: Option<Vec<Candidate>>,
    #[serde(default)]
    pub prompt_feedback: Option<PromptFeedback>,
    #[serde(default)]
    pub usage_metadata: Option<WireUsage>,
    #[serde(default)]
    pub model_version: Option<String>,
    #[serde(default)]
    pub error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Candidate {
    #[serde(default)]
    pub index: u32,
    #[serde(default)]
    pub content: Option<WireContent>,
    #[serde(default)]
    pub finish_reason: Option<String>,
}

#[derive(Deserialize)]
pub struct WireContent {
    #[serde(default)]
    pub parts: Option<Vec<WirePart>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WirePart {
    #[serde(default)]
    pub text: Option<String>,
    /// Whether the text is what the model thinks instead of what it says.
    #[serde(default)]
    pub thought: Option<bool>,
    #[serde(default)]
    pub thought_signature: Option<String>,
    #[serde(default)]
    pub function_call: Option<WireCall>,
}

#[derive(Deserialize)]
pub struct WireCall {
    #[serde(default)]
    pub id: Option<String>,
    pub name: String,
    #[serde(default)]
    pub args: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptFeedback {
    #[serde(default)]
    pub block_reason: Option<String>,
}

/// Token counts; absent ones count as none.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WireUsage {
    #[serde(default)]
    prompt_token_count: u64,
    #[serde(default)]
    candidates_token_count: u64,
    #[serde(default)]
    thoughts_token_count: u64,
    #[serde(default)]
    cached_content_token_count: Option<u64>,
}

impl From<WireUsage> for Usage {
    fn from(usage: WireUsage) -> Self {
        Usage {
            prompt_tokens: usage.prompt_token_count,
            completion_tokens: usage.candidates_token_count.saturating_add(usage.thoughts_token_count),
            cached_tokens: usage.cached_content_token_count,
        }
    }
}

/// Google has no word of its own for an answer that ends in calls.
pub fn finish_reason(word: &str, has_calls: bool) -> FinishReason {
    match word {
        "STOP" if has_calls => FinishReason::ToolCalls,
        "STOP" => FinishReason::Stop,
        "MAX_TOKENS" => FinishReason::Length,
        "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" => FinishReason::ContentFilter,
        other => FinishReason::Other(other.to_ascii_lowercase()),
    }
}

/// Reads a whole answer.
pub fn read(body: &[u8], requested_model: &str) -> Result<Generation, DecodeError> {
    let mut answer: WireAnswer =
        serde_json::from_slice(body).map_err(|error| DecodeError::unreadable(body, error.to_string()))?;
    let model = answer.model_version.take();
    let mut chunks = Chunks::default();
    let mut deltas = VecDeque::new();
    chunks.take(answer, &mut deltas)?;
    let unfinished = || DecodeError::Malformed("it has no finished candidate".to_owned());
    chunks.end(&mut deltas).map_err(|_| unfinished())?;
    let mut collector = Collector::default();
    deltas.into_iter().for_each(|delta| collector.push(delta));
    collector.finish(model.unwrap_or_else(|| requested_model.to_owned())).ok_or_else(unfinished)
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
    #[serde(default)]
    input_token_limit: Option<u64>,
    #[serde(default)]
    supported_generation_methods: Vec<String>,
}

/// Reads `GET /v1beta/models`: the ones that can answer. Others embed, paint or speak.
pub fn read_models(body: &[u8]) -> Result<Vec<ModelInfo>, String> {
    let list: ModelList = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let answers = |model: &WireModel| {
        let methods = &model.supported_generation_methods;
        methods.iter().any(|method| method == "generateContent")
    };
    let info = |model: WireModel| ModelInfo {
        context: model.input_token_limit,
        ..ModelInfo::named(model.name.strip_prefix("models/").unwrap_or(&model.name))
    };
    Ok(list.models.into_iter().filter(answers).map(info).collect())
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;

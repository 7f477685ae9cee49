//! The JSON that Google sends: a complete answer, or one part of a streamed answer.

use hob_core::{FinishReason, Usage};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::wire::token_count;

/// The complete answer, or its next part.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireAnswer {
    #[serde(default)]
    pub(super) candidates: Option<Vec<Candidate>>,
    #[serde(default)]
    pub(super) prompt_feedback: Option<PromptFeedback>,
    #[serde(default)]
    pub(super) usage_metadata: Option<WireUsage>,
    #[serde(default)]
    pub(super) model_version: Option<String>,
    #[serde(default)]
    pub(super) error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Candidate {
    #[serde(default)]
    pub(super) index: u32,
    #[serde(default)]
    pub(super) content: Option<WireContent>,
    #[serde(default)]
    pub(super) finish_reason: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct WireContent {
    #[serde(default)]
    pub(super) parts: Option<Vec<WirePart>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WirePart {
    #[serde(default)]
    pub(super) text: Option<String>,
    /// Whether the text is reasoning.
    #[serde(default)]
    pub(super) thought: Option<bool>,
    #[serde(default)]
    pub(super) thought_signature: Option<String>,
    #[serde(default)]
    pub(super) function_call: Option<WireCall>,
}

#[derive(Deserialize)]
pub(super) struct WireCall {
    #[serde(default)]
    pub(super) id: Option<String>,
    pub(super) name: String,
    #[serde(default)]
    pub(super) args: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PromptFeedback {
    #[serde(default)]
    pub(super) block_reason: Option<String>,
}

/// Token counts. A missing count is zero.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireUsage {
    #[serde(default, deserialize_with = "token_count::or_zero")]
    prompt_token_count: u64,
    #[serde(default, deserialize_with = "token_count::or_zero")]
    candidates_token_count: u64,
    #[serde(default, deserialize_with = "token_count::optional")]
    thoughts_token_count: Option<u64>,
    #[serde(default, deserialize_with = "token_count::optional")]
    cached_content_token_count: Option<u64>,
}

impl From<WireUsage> for Usage {
    fn from(usage: WireUsage) -> Self {
        Usage {
            prompt_tokens: usage.prompt_token_count,
            completion_tokens: usage
                .candidates_token_count
                .saturating_add(usage.thoughts_token_count.unwrap_or(0)),
            cached_tokens: usage.cached_content_token_count,
            reasoning_tokens: usage.thoughts_token_count,
            load_time: None,
        }
    }
}

/// Google has no separate finish reason for an answer that ends in calls.
pub(super) fn finish_reason(word: &str, has_calls: bool) -> FinishReason {
    match FinishReason::parse(word) {
        FinishReason::Stop if has_calls => FinishReason::ToolCalls,
        reason => reason,
    }
}

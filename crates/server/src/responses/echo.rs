//! The fields of a request that its response repeats.

use serde::Serialize;
use serde_json::{Map, Value};

/// The fields.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Echo {
    pub(super) background: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) conversation: Option<Value>,
    pub(super) instructions: Option<String>,
    pub(super) max_output_tokens: Option<i64>,
    pub(super) metadata: Map<String, Value>,
    pub(super) parallel_tool_calls: bool,
    pub(super) previous_response_id: Option<String>,
    pub(super) prompt_cache_key: Option<Value>,
    pub(super) reasoning: Value,
    pub(super) safety_identifier: Option<Value>,
    pub(super) service_tier: Option<Value>,
    pub(super) store: bool,
    pub(super) temperature: Option<f64>,
    pub(super) text: Value,
    pub(super) tool_choice: Value,
    pub(super) tools: Vec<Value>,
    pub(super) top_logprobs: i64,
    pub(super) top_p: Option<f64>,
    pub(super) truncation: &'static str,
    pub(super) user: Option<Value>,
}

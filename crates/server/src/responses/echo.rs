//! The fields of a request that its response repeats.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::json::push_json;

/// The fields.
#[derive(Debug, Serialize)]
pub(super) struct Echo<'a> {
    pub(super) background: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) conversation: Option<EchoedConversation<'a>>,
    pub(super) instructions: Option<&'a str>,
    pub(super) max_output_tokens: Option<i64>,
    #[serde(serialize_with = "or_empty")]
    pub(super) metadata: Option<&'a Map<String, Value>>,
    pub(super) parallel_tool_calls: bool,
    pub(super) previous_response_id: Option<&'a str>,
    pub(super) prompt_cache_key: Option<&'a Value>,
    pub(super) reasoning: EchoedReasoning<'a>,
    pub(super) safety_identifier: Option<&'a Value>,
    pub(super) service_tier: Option<&'a Value>,
    pub(super) temperature: Option<f64>,
    pub(super) text: &'a Value,
    #[serde(serialize_with = "or_auto")]
    pub(super) tool_choice: &'a Value,
    pub(super) tools: &'a [Value],
    pub(super) top_logprobs: i64,
    pub(super) top_p: Option<f64>,
    pub(super) truncation: &'static str,
    pub(super) user: Option<&'a Value>,
}

#[derive(Debug, Serialize)]
pub(super) struct EchoedConversation<'a> {
    pub(super) id: &'a str,
}

#[derive(Debug, Serialize)]
pub(super) struct EchoedReasoning<'a> {
    pub(super) effort: Option<&'a str>,
    pub(super) summary: Option<&'a str>,
}

/// The fields as JSON, each with a comma before it. All but `store`, which is decided later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EchoedFields(pub(super) Vec<u8>);

impl Echo<'_> {
    /// Writes the fields. They are the same in every state of the response, so once is enough.
    pub(super) fn render(&self) -> EchoedFields {
        let mut fields = Vec::with_capacity(768);
        push_json(&mut fields, self);
        // An object with fields begins and ends with a brace.
        fields.pop();
        if let Some(first) = fields.first_mut() {
            *first = b',';
        }
        EchoedFields(fields)
    }
}

fn or_empty<S: Serializer>(metadata: &Option<&Map<String, Value>>, serializer: S) -> Result<S::Ok, S::Error> {
    match metadata {
        Some(metadata) => metadata.serialize(serializer),
        None => Map::new().serialize(serializer),
    }
}

fn or_auto<S: Serializer>(choice: &Value, serializer: S) -> Result<S::Ok, S::Error> {
    match choice {
        Value::Null => "auto".serialize(serializer),
        choice => choice.serialize(serializer),
    }
}

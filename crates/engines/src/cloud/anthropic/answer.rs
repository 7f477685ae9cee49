//! The complete answer, and what it shares with the stream: token usage and finish reasons.

use std::collections::HashMap;

use hob_core::{Answer, FinishReason, Generation, ModelInfo, SealedReasoning, ToolCall, Usage};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::wire::stream_decoder::DecodeError;
use crate::wire::token_count;

#[derive(Deserialize)]
struct WireMessage {
    #[serde(default)]
    model: Option<String>,
    content: Vec<Block>,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default)]
    stop_sequence: Option<String>,
    #[serde(default)]
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        text: String,
    },
    Thinking {
        thinking: String,
        #[serde(default)]
        signature: String,
    },
    RedactedThinking {
        data: String,
    },
    ToolUse {
        id: String,
        name: String,
        #[serde(default)]
        input: Map<String, Value>,
    },
    /// The work of tools that run on Anthropic's servers.
    #[serde(other)]
    Other,
}

/// Token counts. A stream sends them twice; the later ones are final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub(super) struct WireUsage {
    /// Without the tokens that were read from or written to the cache.
    #[serde(default, deserialize_with = "token_count::optional")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "token_count::optional")]
    cache_read_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "token_count::optional")]
    cache_creation_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "token_count::optional")]
    output_tokens: Option<u64>,
}

impl WireUsage {
    /// These counts, with those of `later` in place of the ones that it has.
    pub(super) fn updated(self, later: WireUsage) -> Self {
        WireUsage {
            input_tokens: later.input_tokens.or(self.input_tokens),
            cache_read_input_tokens: later.cache_read_input_tokens.or(self.cache_read_input_tokens),
            cache_creation_input_tokens: later
                .cache_creation_input_tokens
                .or(self.cache_creation_input_tokens),
            output_tokens: later.output_tokens.or(self.output_tokens),
        }
    }
}

impl From<WireUsage> for Usage {
    fn from(usage: WireUsage) -> Self {
        let count = |tokens: Option<u64>| tokens.unwrap_or(0);
        Usage {
            prompt_tokens: count(usage.input_tokens)
                .saturating_add(count(usage.cache_read_input_tokens))
                .saturating_add(count(usage.cache_creation_input_tokens)),
            completion_tokens: count(usage.output_tokens),
            cached_tokens: usage.cache_read_input_tokens,
            // It counts what its models think as output, and does not say how much of it.
            reasoning_tokens: None,
            load_time: None,
        }
    }
}

pub(super) fn finish_reason(word: &str, stop_sequence: Option<String>) -> FinishReason {
    match (word, stop_sequence) {
        ("stop_sequence", Some(stop)) => FinishReason::StopSequence(stop),
        _ => FinishReason::parse(word),
    }
}

/// Reads a complete answer.
pub(super) fn read(body: &[u8], requested_model: &str) -> Result<Generation, DecodeError> {
    let message: WireMessage =
        serde_json::from_slice(body).map_err(|error| DecodeError::unreadable(body, error.to_string()))?;
    let stop_reason =
        message.stop_reason.ok_or_else(|| DecodeError::Malformed("it has no stop_reason".to_owned()))?;
    let mut answer = Answer {
        content: String::new(),
        reasoning: None,
        tool_calls: Vec::new(),
        finish_reason: finish_reason(&stop_reason, message.stop_sequence),
        sealed_reasoning: Vec::new(),
        later_thoughts: Vec::new(),
        logprobs: None,
    };
    for block in message.content {
        if matches!(block, Block::Thinking { .. } | Block::RedactedThinking { .. }) {
            answer.begin_thought();
        }
        match block {
            Block::Text { text } => answer.content.push_str(&text),
            Block::Thinking { thinking, signature } => {
                if !thinking.is_empty() {
                    answer.reasoning.get_or_insert_default().push_str(&thinking);
                }
                if !signature.is_empty() {
                    answer.sealed_reasoning.push(SealedReasoning::Signed { text: thinking, signature });
                }
            }
            Block::RedactedThinking { data } => {
                answer.sealed_reasoning.push(SealedReasoning::Redacted { data });
            }
            Block::ToolUse { id, name, input } => {
                answer.tool_calls.push(ToolCall { id, name, arguments: Value::Object(input).to_string() })
            }
            Block::Other => {}
        }
    }
    Ok(Generation {
        model: message.model.unwrap_or_else(|| requested_model.to_owned()),
        answer,
        alternatives: Vec::new(),
        usage: message.usage.map(Usage::from),
        warnings: Vec::new(),
    })
}

#[derive(Deserialize)]
struct ModelList {
    data: Vec<WireModel>,
}

#[derive(Deserialize)]
struct WireModel {
    id: String,
    #[serde(default)]
    max_input_tokens: Option<u64>,
    /// The largest limit of an answer.
    #[serde(default)]
    max_tokens: Option<u32>,
}

/// The models, and the largest limits of their answers, if the list has them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ListedModels {
    pub(super) models: Vec<ModelInfo>,
    pub(super) output_limits: HashMap<String, u32>,
}

/// Reads `GET /v1/models`.
pub(super) fn read_models(body: &[u8]) -> Result<ListedModels, String> {
    let list: ModelList = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let limit = |model: &WireModel| Some((model.id.clone(), model.max_tokens.filter(|most| *most > 0)?));
    let output_limits = list.data.iter().filter_map(limit).collect();
    let info = |model: WireModel| ModelInfo { context: model.max_input_tokens, ..ModelInfo::named(model.id) };
    Ok(ListedModels { models: list.data.into_iter().map(info).collect(), output_limits })
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;

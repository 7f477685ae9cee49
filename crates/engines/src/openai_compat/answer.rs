//! The complete answer, token usage and the list of models.

use hob_core::{
    Answer, FinishReason, Generation, ModelCapabilities, ModelInfo, ModelKind, SealedReasoning, Usage,
};
use serde::Deserialize;
use serde_json::Value;

use super::legacy_logprobs;
use super::message_content::MessageContent;
use super::tool_calls::WireCall;
use crate::wire::error_response::EngineErrorBody;
use crate::wire::stream_decoder::DecodeError;
use crate::wire::token_count;

#[derive(Deserialize)]
struct Completion {
    #[serde(default)]
    model: Option<String>,
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Option<WireUsage>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    message: Option<WireAnswer>,
    /// In the place of `message` in a text completion.
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    finish_reason: Option<String>,
    /// The stop sequence, in vLLM; a token's number in place of it is the end of a turn.
    #[serde(default)]
    stop_reason: Option<Value>,
    /// The same in SGLang.
    #[serde(default)]
    matched_stop: Option<Value>,
    #[serde(default)]
    logprobs: Option<Value>,
    /// OpenRouter: why the provider behind it broke off.
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize, Default)]
struct WireAnswer {
    #[serde(default)]
    content: Option<MessageContent<String>>,
    #[serde(default)]
    reasoning_content: Option<String>,
    /// The newer name. Some versions of vLLM send both.
    #[serde(default)]
    reasoning: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<WireCall>>,
    /// LiteLLM: what Anthropic signed or hid.
    #[serde(default)]
    thinking_blocks: Option<Vec<Value>>,
}

/// Token counts. A missing count is zero.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct WireUsage {
    #[serde(default, deserialize_with = "token_count::or_zero")]
    prompt_tokens: u64,
    #[serde(default, deserialize_with = "token_count::or_zero")]
    completion_tokens: u64,
    #[serde(default, deserialize_with = "token_count::or_zero")]
    total_tokens: u64,
    #[serde(default)]
    prompt_tokens_details: Option<PromptDetails>,
    #[serde(default)]
    completion_tokens_details: Option<CompletionDetails>,
    /// Where SGLang has it.
    #[serde(default, deserialize_with = "token_count::optional")]
    reasoning_tokens: Option<u64>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct PromptDetails {
    #[serde(default, deserialize_with = "token_count::optional")]
    cached_tokens: Option<u64>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct CompletionDetails {
    #[serde(default, deserialize_with = "token_count::optional")]
    reasoning_tokens: Option<u64>,
}

impl From<WireUsage> for Usage {
    fn from(usage: WireUsage) -> Self {
        let thought = usage.completion_tokens_details.and_then(|details| details.reasoning_tokens);
        let counted = usage.prompt_tokens.saturating_add(usage.completion_tokens);
        // xAI counts what its models think beside the completion, and only the total shows it.
        let beside = thought.filter(|tokens| counted.saturating_add(*tokens) == usage.total_tokens);
        Usage {
            prompt_tokens: usage.prompt_tokens,
            completion_tokens: usage.completion_tokens.saturating_add(beside.unwrap_or(0)),
            cached_tokens: usage.prompt_tokens_details.and_then(|details| details.cached_tokens),
            // SGLang writes a zero for every model that does not think.
            reasoning_tokens: thought.or(usage.reasoning_tokens.filter(|tokens| *tokens > 0)),
            load_time: None,
        }
    }
}

/// Reads a complete answer.
pub fn read(body: &[u8], requested_model: &str) -> Result<Generation, DecodeError> {
    // Some proxies send an error with a success status, also beside an answer.
    let completion: Completion =
        serde_json::from_slice(body).map_err(|error| DecodeError::unreadable(body, error.to_string()))?;
    let of_choices = completion.choices.iter().filter_map(|choice| choice.error.as_ref());
    if let Some(error) = completion.error.iter().chain(of_choices).next() {
        return Err(DecodeError::reported(EngineErrorBody::of(error)));
    }
    let malformed = |reason: &str| DecodeError::Malformed(reason.to_owned());
    let mut answers = Vec::with_capacity(completion.choices.len());
    for choice in completion.choices {
        if choice.message.is_none() && choice.text.is_none() {
            return Err(malformed("a choice has neither 'message' nor 'text'"));
        }
        answers.push(
            choice
                .into_answer()
                .ok_or_else(|| malformed("a choice has neither an answer nor a finish_reason"))?,
        );
    }
    let mut answers = answers.into_iter();
    Ok(Generation {
        model: completion.model.unwrap_or_else(|| requested_model.to_owned()),
        answer: answers.next().ok_or_else(|| malformed("it has no choices"))?,
        alternatives: answers.collect(),
        usage: completion.usage.map(Usage::from),
        warnings: Vec::new(),
    })
}

impl Choice {
    /// `None` without an answer.
    fn into_answer(self) -> Option<Answer> {
        let message = self.message.unwrap_or_default();
        let calls = message.tool_calls.unwrap_or_default();
        let (thought, content) = message.content.map(MessageContent::split).unwrap_or_default();
        // A refusal is the whole answer.
        let content = content.or(message.refusal).or(self.text).unwrap_or_default();
        // Some engines leave the reason out. The body has come as a whole, so an answer in it is complete.
        let finish_reason = match self.finish_reason.as_deref() {
            None | Some("") if !calls.is_empty() => FinishReason::ToolCalls,
            None if content.is_empty() => return None,
            None => FinishReason::Stop,
            Some(reason) => finish(reason, self.stop_reason.or(self.matched_stop)),
        };
        Some(Answer {
            content,
            reasoning: thought
                .or(message.reasoning_content)
                .or(message.reasoning)
                .filter(|text| !text.is_empty()),
            tool_calls: calls.into_iter().map(WireCall::into_tool_call).collect(),
            finish_reason,
            sealed_reasoning: message
                .thinking_blocks
                .iter()
                .flatten()
                .filter_map(SealedReasoning::from_value)
                .collect(),
            later_thoughts: Vec::new(),
            logprobs: self.logprobs.filter(|value| !value.is_null()).map(legacy_logprobs::in_chat_form),
        })
    }
}

/// The finish reason, with the stop sequence if the engine names one.
pub(super) fn finish(reason: &str, stop: Option<Value>) -> FinishReason {
    match (FinishReason::parse(reason), stop) {
        (FinishReason::Stop, Some(Value::String(stop))) => FinishReason::StopSequence(stop),
        (reason, _) => reason,
    }
}

#[derive(Deserialize)]
struct ModelList {
    data: Vec<WireModel>,
}

#[derive(Deserialize)]
struct WireModel {
    id: String,
    #[serde(default)]
    created: Option<i64>,
    /// vLLM and SGLang.
    #[serde(default)]
    max_model_len: Option<u64>,
    /// llama.cpp.
    #[serde(default)]
    meta: Option<ModelMeta>,
    /// llama.cpp, and some services.
    #[serde(default)]
    architecture: Option<Architecture>,
}

#[derive(Deserialize)]
struct Architecture {
    #[serde(default)]
    input_modalities: Option<Vec<String>>,
}

#[derive(Deserialize, Default)]
struct ModelMeta {
    #[serde(default)]
    n_ctx: Option<u64>,
    #[serde(default)]
    n_params: Option<u64>,
    #[serde(default)]
    size: Option<u64>,
    #[serde(default)]
    ftype: Option<String>,
}

/// Reads `GET /v1/models`.
pub fn read_models(body: &[u8]) -> Result<Vec<ModelInfo>, String> {
    let list: ModelList = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    Ok(list.data.into_iter().map(WireModel::into_info).collect())
}

impl WireModel {
    fn into_info(self) -> ModelInfo {
        let meta = self.meta.unwrap_or_default();
        let inputs = self.architecture.and_then(|architecture| architecture.input_modalities);
        let reads = |kind: &str| Some(inputs.as_ref()?.iter().any(|input| input == kind));
        ModelInfo {
            kind: kind_of(&self.id),
            id: self.id,
            created: self.created,
            parameters: meta.n_params,
            context: self.max_model_len.or(meta.n_ctx),
            size: meta.size,
            quantization: meta.ftype,
            capabilities: ModelCapabilities {
                vision: reads("image"),
                audio: reads("audio"),
                ..ModelCapabilities::default()
            },
        }
    }
}

#[derive(Deserialize)]
struct Props {
    #[serde(default)]
    modalities: Modalities,
    #[serde(default)]
    chat_template_caps: TemplateCapabilities,
}

#[derive(Deserialize, Default)]
struct Modalities {
    #[serde(default)]
    vision: Option<bool>,
    #[serde(default)]
    audio: Option<bool>,
}

#[derive(Deserialize, Default)]
struct TemplateCapabilities {
    #[serde(default)]
    supports_tools: Option<bool>,
}

/// Reads llama.cpp's `GET /props`.
pub(super) fn read_props(body: &[u8]) -> Result<ModelCapabilities, String> {
    let props: Props = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    Ok(ModelCapabilities {
        vision: props.modalities.vision,
        audio: props.modalities.audio,
        tools: props.chat_template_caps.supports_tools,
        ..ModelCapabilities::default()
    })
}

/// These services do not report the kind of a model, so its name decides: `text-embedding-3-small`,
/// `nomic-embed-text`.
fn kind_of(id: &str) -> ModelKind {
    if id.to_ascii_lowercase().contains("embed") { ModelKind::Embedding } else { ModelKind::Text }
}

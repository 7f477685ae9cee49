//! Answers as our HTTP API gives them.

use hob_core::routing::AUTO;
use hob_core::{Answer, Generation, ToolCall, Usage};
use hob_system::ListedModel;
use serde::Serialize;
use serde_json::Value;

/// The body of a whole answer.
#[derive(Debug, Serialize)]
pub(crate) struct Completion<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    model: &'a str,
    choices: Vec<Choice<'a>>,
    usage: WireUsage,
}

#[derive(Debug, Serialize)]
struct Choice<'a> {
    index: usize,
    message: Message<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<&'a Value>,
    finish_reason: &'a str,
}

#[derive(Debug, Serialize)]
struct Message<'a> {
    role: &'static str,
    content: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<&'a str>,
    tool_calls: Option<Vec<WireCall<'a>>>,
}

#[derive(Debug, Serialize)]
struct WireCall<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Debug, Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: &'a str,
}

/// Token counts; an engine that does not count has used none that we know of.
#[derive(Debug, Serialize, Default)]
pub(crate) struct WireUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_tokens_details: Option<PromptDetails>,
}

#[derive(Debug, Serialize)]
struct PromptDetails {
    cached_tokens: u64,
}

impl From<Usage> for WireUsage {
    fn from(usage: Usage) -> Self {
        WireUsage {
            prompt_tokens: usage.prompt_tokens,
            completion_tokens: usage.completion_tokens,
            total_tokens: usage.total_tokens(),
            prompt_tokens_details: usage.cached_tokens.map(|cached_tokens| PromptDetails { cached_tokens }),
        }
    }
}

impl<'a> Completion<'a> {
    pub(crate) fn new(id: &'a str, created: u64, generation: &'a Generation) -> Self {
        Completion {
            id,
            object: "chat.completion",
            created,
            model: &generation.model,
            choices: generation
                .answers()
                .enumerate()
                .map(|(index, answer)| Choice::new(index, answer))
                .collect(),
            usage: generation.usage.map(WireUsage::from).unwrap_or_default(),
        }
    }
}

impl<'a> Choice<'a> {
    fn new(index: usize, answer: &'a Answer) -> Self {
        let calls: Vec<_> = answer.tool_calls.iter().map(WireCall::new).collect();
        Choice {
            index,
            message: Message {
                role: "assistant",
                content: &answer.content,
                reasoning_content: answer.reasoning.as_deref(),
                tool_calls: Some(calls).filter(|calls| !calls.is_empty()),
            },
            logprobs: answer.logprobs.as_ref(),
            finish_reason: answer.finish_reason.as_str(),
        }
    }
}

impl<'a> WireCall<'a> {
    fn new(call: &'a ToolCall) -> Self {
        WireCall {
            id: &call.id,
            kind: "function",
            function: Function { name: &call.name, arguments: &call.arguments },
        }
    }
}

/// One entry of the list of models.
#[derive(Debug, Serialize)]
pub(crate) struct Model {
    id: String,
    object: &'static str,
    created: i64,
    owned_by: String,
}

impl From<ListedModel> for Model {
    fn from(ListedModel { engine, model }: ListedModel) -> Self {
        Model { id: model.id, object: "model", created: model.created.unwrap_or(0), owned_by: engine }
    }
}

impl Model {
    /// The one that leaves the choice to us.
    pub(crate) fn auto() -> Self {
        Model { id: AUTO.to_owned(), object: "model", created: 0, owned_by: "hob".to_owned() }
    }
}

/// The list of models.
#[derive(Debug, Serialize)]
pub(crate) struct ModelList {
    object: &'static str,
    data: Vec<Model>,
}

impl ModelList {
    pub(crate) fn new(models: impl IntoIterator<Item = Model>) -> Self {
        ModelList { object: "list", data: models.into_iter().collect() }
    }
}

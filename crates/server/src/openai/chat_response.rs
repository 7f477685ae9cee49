//! The body of an answer that is not streamed.

use hob_core::{Answer, AnswerSource, FinishReason, Generation, SealedReasoning, ToolCall, Usage};
use serde::Serialize;
use serde_json::Value;

use super::chat_extras::WireStep;

/// The form of calls in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum CallForm {
    #[default]
    Tools,
    /// The older form, for callers that sent `functions`: one call without an id.
    Function,
}

impl CallForm {
    /// The value of `finish_reason`.
    pub(crate) fn finish_reason(self, reason: &FinishReason) -> &'static str {
        match (self, reason) {
            (CallForm::Function, FinishReason::ToolCalls) => "function_call",
            (CallForm::Function | CallForm::Tools, reason) => reason.as_str(),
        }
    }
}

/// The body.
#[derive(Debug, Serialize)]
pub(crate) struct Completion<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    model: &'a str,
    choices: Vec<Choice<'a>>,
    usage: WireUsage,
    /// Where the request has `documents`.
    #[serde(skip_serializing_if = "Option::is_none")]
    sources: Option<&'a [AnswerSource]>,
    /// Where the request has `steps`.
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Vec<WireStep>>,
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
    /// What the provider requires back with the next question.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    thinking_blocks: Vec<Value>,
    tool_calls: Option<Vec<WireCall<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<Function<'a>>,
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

/// Token counts. They are zero if the engine does not count.
#[derive(Debug, Serialize, Default)]
pub(crate) struct WireUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_tokens_details: Option<PromptDetails>,
    #[serde(skip_serializing_if = "Option::is_none")]
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Debug, Serialize)]
struct PromptDetails {
    cached_tokens: u64,
}

#[derive(Debug, Serialize)]
struct CompletionDetails {
    reasoning_tokens: u64,
}

impl From<Usage> for WireUsage {
    fn from(usage: Usage) -> Self {
        WireUsage {
            prompt_tokens: usage.prompt_tokens,
            completion_tokens: usage.completion_tokens,
            total_tokens: usage.total_tokens(),
            prompt_tokens_details: usage.cached_tokens.map(|cached_tokens| PromptDetails { cached_tokens }),
            completion_tokens_details: usage
                .reasoning_tokens
                .map(|reasoning_tokens| CompletionDetails { reasoning_tokens }),
        }
    }
}

impl<'a> Completion<'a> {
    pub(crate) fn new(id: &'a str, created: u64, generation: &'a Generation, calls: CallForm) -> Self {
        Completion {
            id,
            object: "chat.completion",
            created,
            model: &generation.model,
            choices: generation
                .answers()
                .enumerate()
                .map(|(index, answer)| Choice::new(index, answer, calls))
                .collect(),
            usage: generation.usage.map(WireUsage::from).unwrap_or_default(),
            sources: None,
            steps: None,
        }
    }

    /// Adds what the caller asked for beyond OpenAI's format.
    pub(crate) fn with_extras(
        self,
        sources: Option<&'a [AnswerSource]>,
        steps: Option<Vec<WireStep>>,
    ) -> Self {
        Completion { sources, steps, ..self }
    }
}

impl<'a> Choice<'a> {
    fn new(index: usize, answer: &'a Answer, form: CallForm) -> Self {
        let (calls, function_call): (Vec<_>, _) = match form {
            CallForm::Tools => (answer.tool_calls.iter().map(WireCall::new).collect(), None),
            CallForm::Function => (Vec::new(), answer.tool_calls.first().map(Function::new)),
        };
        Choice {
            index,
            message: Message {
                role: "assistant",
                content: &answer.content,
                reasoning_content: answer.reasoning.as_deref(),
                thinking_blocks: answer.sealed_reasoning.iter().map(SealedReasoning::to_value).collect(),
                tool_calls: Some(calls).filter(|calls| !calls.is_empty()),
                function_call,
            },
            logprobs: answer.logprobs.as_ref(),
            finish_reason: form.finish_reason(&answer.finish_reason),
        }
    }
}

impl<'a> WireCall<'a> {
    fn new(call: &'a ToolCall) -> Self {
        WireCall { id: &call.id, kind: "function", function: Function::new(call) }
    }
}

impl<'a> Function<'a> {
    fn new(call: &'a ToolCall) -> Self {
        Function { name: &call.name, arguments: &call.arguments }
    }
}

//! The body of an answer that is not streamed, and what it shares with the stream: token counts and the reason of the end.

use std::borrow::Cow;

use hob_core::{FinishReason, Generation, SealedReasoning, Stretch, ToolCall, Usage};
use serde::Serialize;
use serde_json::{Map, Value};

use super::thinking::{ThinkingDisplay, signature};

/// The body.
#[derive(Debug, Serialize)]
pub(super) struct MessageBody<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    role: &'static str,
    model: &'a str,
    content: Vec<BodyBlock<'a>>,
    #[serde(flatten)]
    ending: Ending<'a>,
    usage: MessageUsage,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum BodyBlock<'a> {
    Thinking { thinking: &'a str, signature: Cow<'a, str> },
    RedactedThinking { data: &'a str },
    Text { text: &'a str },
    ToolUse { id: &'a str, name: &'a str, input: Map<String, Value> },
}

/// Token counts. They are zero if the engine does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Default)]
pub(super) struct MessageUsage {
    /// Without the tokens that came from a cache.
    input_tokens: u64,
    cache_creation_input_tokens: u64,
    cache_read_input_tokens: u64,
    output_tokens: u64,
}

impl From<Usage> for MessageUsage {
    fn from(usage: Usage) -> Self {
        let cached = usage.cached_tokens.unwrap_or(0).min(usage.prompt_tokens);
        MessageUsage {
            input_tokens: usage.prompt_tokens - cached,
            cache_creation_input_tokens: 0,
            cache_read_input_tokens: cached,
            output_tokens: usage.completion_tokens,
        }
    }
}

/// Why an answer ended.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Ending<'a> {
    stop_reason: &'a str,
    stop_sequence: Option<&'a str>,
}

impl<'a> Ending<'a> {
    /// `stops` are the caller's stop sequences: an engine also reports the end of a turn as a word that it stopped at.
    pub(super) fn of(reason: &'a FinishReason, has_calls: bool, stops: &[String]) -> Self {
        let because = |stop_reason| Ending { stop_reason, stop_sequence: None };
        match reason {
            FinishReason::Length => because("max_tokens"),
            FinishReason::ContentFilter => because("refusal"),
            FinishReason::StopSequence(stop) if stops.contains(stop) => {
                Ending { stop_reason: "stop_sequence", stop_sequence: Some(stop) }
            }
            FinishReason::Other(word) if is_documented(word) => because(word),
            // Some engines end an answer with calls as any other one. Clients run the calls only for this reason.
            _ if has_calls => because("tool_use"),
            FinishReason::Stop
            | FinishReason::StopSequence(_)
            | FinishReason::ToolCalls
            | FinishReason::Other(_) => because("end_turn"),
        }
    }
}

/// Reasons that no other API has a word for.
fn is_documented(word: &str) -> bool {
    matches!(word, "pause_turn" | "model_context_window_exceeded" | "compaction")
}

impl<'a> MessageBody<'a> {
    pub(super) fn new(
        id: &'a str,
        generation: &'a Generation,
        display: ThinkingDisplay,
        stops: &[String],
    ) -> Self {
        let answer = &generation.answer;
        let mut content = Vec::with_capacity(2 + answer.tool_calls.len());
        let stretches = match display {
            // Without the reasoning between them, texts are one block.
            ThinkingDisplay::Absent => vec![Stretch { reasoning: "", sealed: &[], text: &answer.content }],
            ThinkingDisplay::Shown | ThinkingDisplay::Omitted => answer.stretches(),
        };
        for stretch in stretches {
            content.extend(thoughts(stretch, display));
            if !stretch.text.is_empty() {
                content.push(BodyBlock::Text { text: stretch.text });
            }
        }
        content.extend(answer.tool_calls.iter().map(|call| BodyBlock::ToolUse {
            id: &call.id,
            name: &call.name,
            input: input(call),
        }));
        MessageBody {
            id,
            kind: "message",
            role: "assistant",
            model: &generation.model,
            content,
            ending: Ending::of(&answer.finish_reason, !answer.tool_calls.is_empty(), stops),
            usage: generation.usage.map(MessageUsage::from).unwrap_or_default(),
        }
    }
}

/// Reasoning: the blocks that the provider requires back, or else one with Hob's signature.
fn thoughts(stretch: Stretch<'_>, display: ThinkingDisplay) -> Vec<BodyBlock<'_>> {
    let shown = |text| if display == ThinkingDisplay::Shown { text } else { "" };
    let sealed = stretch.sealed.iter().map(|block| match block {
        SealedReasoning::Signed { text, signature } => {
            BodyBlock::Thinking { thinking: shown(text), signature: Cow::Borrowed(signature) }
        }
        SealedReasoning::Redacted { data } => BodyBlock::RedactedThinking { data },
    });
    let mut blocks: Vec<BodyBlock<'_>> = sealed.collect();
    let text = stretch.reasoning;
    if blocks.is_empty() && !text.is_empty() {
        let hidden = if display == ThinkingDisplay::Omitted { text } else { "" };
        blocks.push(BodyBlock::Thinking { thinking: shown(text), signature: Cow::Owned(signature(hidden)) });
    }
    blocks
}

/// The arguments as an object. Invalid arguments reach the tool unchanged, so that the model gets the error.
fn input(call: &ToolCall) -> Map<String, Value> {
    if call.arguments.trim().is_empty() {
        return Map::new();
    }
    serde_json::from_str(&call.arguments)
        .unwrap_or_else(|_| Map::from_iter([("arguments".to_owned(), Value::String(call.arguments.clone()))]))
}

#[cfg(test)]
mod tests {
    use hob_core::Answer;
    use serde_json::json;

    use super::*;

    fn generation() -> Generation {
        let call = |arguments: &str| ToolCall {
            id: "call_1".into(),
            name: "add".into(),
            arguments: arguments.into(),
        };
        Generation {
            model: "m".into(),
            answer: Answer {
                content: "See.".into(),
                reasoning: Some("2 and 2".into()),
                tool_calls: vec![call("{\"b\":1,\"a\":2}"), call(" "), call("[1")],
                finish_reason: FinishReason::Stop,
                sealed_reasoning: Vec::new(),
                later_thoughts: Vec::new(),
                logprobs: None,
            },
            alternatives: Vec::new(),
            usage: Some(Usage {
                prompt_tokens: 10,
                completion_tokens: 4,
                cached_tokens: Some(7),
                reasoning_tokens: None,
                load_time: None,
            }),
            warnings: Vec::new(),
        }
    }

    #[test]
    fn an_answer_is_a_list_of_blocks() {
        let generation = generation();
        let body = MessageBody::new("msg_1", &generation, ThinkingDisplay::Shown, &[]);
        assert_eq!(
            serde_json::to_value(body).unwrap(),
            json!({
                "id": "msg_1", "type": "message", "role": "assistant", "model": "m",
                "content": [
                    { "type": "thinking", "thinking": "2 and 2", "signature": "hob." },
                    { "type": "text", "text": "See." },
                    { "type": "tool_use", "id": "call_1", "name": "add", "input": { "b": 1, "a": 2 } },
                    { "type": "tool_use", "id": "call_1", "name": "add", "input": {} },
                    { "type": "tool_use", "id": "call_1", "name": "add", "input": { "arguments": "[1" } },
                ],
                "stop_reason": "tool_use", "stop_sequence": null,
                "usage": {
                    "input_tokens": 3, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 7, "output_tokens": 4,
                },
            })
        );
    }

    #[test]
    fn reasoning_is_shown_hidden_or_left_out_as_the_caller_asked() {
        let generation = generation();
        let first = |display| {
            let body = MessageBody::new("msg_1", &generation, display, &[]);
            serde_json::to_value(body).unwrap()["content"][0].clone()
        };
        assert_eq!(first(ThinkingDisplay::Absent), json!({ "type": "text", "text": "See." }));
        assert_eq!(
            first(ThinkingDisplay::Omitted),
            json!({ "type": "thinking", "thinking": "", "signature": signature("2 and 2") })
        );
    }

    #[test]
    fn a_thought_after_text_is_a_block_after_it() {
        let mut generation = generation();
        generation.answer.tool_calls.clear();
        generation.answer.content = "One.".into();
        generation.answer.begin_thought();
        generation.answer.content.push_str("Two.");
        generation.answer.reasoning = Some("2 and 2 is 4".into());
        let blocks = |display| {
            let body = MessageBody::new("msg_1", &generation, display, &[]);
            serde_json::to_value(body).unwrap()["content"].clone()
        };
        let text = |text: &str| json!({ "type": "text", "text": text });
        let thought = |text: &str| json!({ "type": "thinking", "thinking": text, "signature": "hob." });
        let shown = json!([thought("2 and 2"), text("One."), thought(" is 4"), text("Two.")]);
        assert_eq!(blocks(ThinkingDisplay::Shown), shown);
        assert_eq!(blocks(ThinkingDisplay::Absent), json!([text("One.Two.")]));
    }

    #[test]
    fn what_a_provider_sealed_keeps_its_seal() {
        let mut generation = generation();
        generation.answer.sealed_reasoning = vec![
            SealedReasoning::Signed { text: "2 and 2".into(), signature: "EqQB".into() },
            SealedReasoning::Redacted { data: "Emw".into() },
        ];
        let blocks = |display| {
            let body = MessageBody::new("msg_1", &generation, display, &[]);
            serde_json::to_value(body).unwrap()["content"].as_array().unwrap()[..2].to_vec()
        };
        let signed = |text: &str| json!({ "type": "thinking", "thinking": text, "signature": "EqQB" });
        let redacted = json!({ "type": "redacted_thinking", "data": "Emw" });
        assert_eq!(blocks(ThinkingDisplay::Shown), [signed("2 and 2"), redacted.clone()]);
        assert_eq!(blocks(ThinkingDisplay::Omitted), [signed(""), redacted]);
    }

    #[test]
    fn the_reason_of_the_end_is_one_that_clients_know() {
        let stops = ["END".to_owned()];
        let other = |word: &str| FinishReason::Other(word.to_owned());
        for (reason, has_calls, stop_reason, stop_sequence) in [
            (FinishReason::Stop, false, "end_turn", None),
            (FinishReason::Stop, true, "tool_use", None),
            (FinishReason::ToolCalls, true, "tool_use", None),
            (FinishReason::ToolCalls, false, "end_turn", None),
            (FinishReason::Length, true, "max_tokens", None),
            (FinishReason::ContentFilter, false, "refusal", None),
            (FinishReason::StopSequence("END".into()), false, "stop_sequence", Some("END")),
            (FinishReason::StopSequence("<|im_end|>".into()), false, "end_turn", None),
            (other("pause_turn"), false, "pause_turn", None),
            (other("eos_weird"), false, "end_turn", None),
        ] {
            assert_eq!(Ending::of(&reason, has_calls, &stops), Ending { stop_reason, stop_sequence });
        }
    }
}

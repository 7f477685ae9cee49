//! An answer as it comes, piece by piece.

use std::collections::BTreeMap;
use std::pin::Pin;

use futures::Stream;
use serde::Serialize;
use serde_json::{Value, json};

use crate::answer_order::{LaterThought, Stretch};
use crate::engine_error::EngineError;
use crate::finish_reason::FinishReason;
use crate::generate::{Answer, AnswerWarning, Generation, Usage};
use crate::message::ToolCall;
use crate::reasoning::{ReasoningSeal, SealedReasoning};

/// A piece of text.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TextDelta {
    /// Which of the `n` answers it belongs to.
    pub choice: u32,
    pub text: String,
    /// Token probabilities in the chat-completions form, when they were asked for.
    pub logprobs: Option<Box<Value>>,
}

/// A piece of a tool call. The first piece of a call has `id` and `name`; the arguments come in fragments.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolCallDelta {
    /// Which of the `n` answers it belongs to.
    pub choice: u32,
    /// Which call of the answer.
    pub index: u32,
    pub id: Option<String>,
    pub name: Option<String>,
    pub arguments: String,
}

/// What an agent did: an event's name and data.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentStep {
    pub name: &'static str,
    pub data: Value,
    /// The call of a tool that it begins or ends.
    pub tool: Option<ToolStep>,
}

/// The beginning or the end of a call of a tool. Both have the same id.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ToolStep {
    Started {
        id: String,
        tool: String,
        /// As the model wrote them.
        arguments: String,
    },
    Ended {
        id: String,
        tool: String,
        /// What the model gets.
        result: String,
        success: bool,
    },
}

impl AgentStep {
    /// The name of a step that is a [`AnswerWarning`].
    pub const WARNING: &str = "WARNING";

    /// A warning that was found after the answer had begun.
    pub fn warning(warning: &AnswerWarning) -> Self {
        AgentStep { name: Self::WARNING, data: json!({ "warning": warning.text() }), tool: None }
    }
}

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Delta {
    Text(TextDelta),
    /// The model's reasoning before its answer.
    Reasoning {
        choice: u32,
        text: String,
    },
    /// What its provider requires back with the reasoning before it.
    ReasoningSeal {
        choice: u32,
        seal: ReasoningSeal,
    },
    ToolCall(ToolCallDelta),
    /// A step of an agent. Not part of the answer.
    Step(Box<AgentStep>),
    /// One of the `n` answers is complete.
    Finish {
        choice: u32,
        reason: FinishReason,
    },
    /// Everything is complete. A stream that ends without this is broken.
    Done {
        usage: Option<Usage>,
    },
}

impl Delta {
    /// Text of the first answer.
    pub fn text(text: impl Into<String>) -> Self {
        Delta::Text(TextDelta { text: text.into(), ..TextDelta::default() })
    }
}

/// Pieces until `Done` or an error. Dropping it cancels the work behind it.
pub type DeltaStream = Pin<Box<dyn Stream<Item = Result<Delta, EngineError>> + Send>>;

/// An answer in progress.
pub struct GenerationStream {
    pub warnings: Vec<AnswerWarning>,
    pub deltas: DeltaStream,
}

/// Puts the pieces of an answer together.
#[derive(Debug, Default)]
pub struct Collector {
    choices: BTreeMap<u32, Collected>,
    usage: Option<Usage>,
}

#[derive(Debug, Default)]
struct Collected {
    content: String,
    reasoning: String,
    later_thoughts: Vec<LaterThought>,
    /// The part of the reasoning that no seal has followed yet.
    unsealed: String,
    sealed: Vec<SealedReasoning>,
    tool_calls: BTreeMap<u32, ToolCall>,
    finish_reason: Option<FinishReason>,
    logprobs: Vec<Value>,
}

impl Collected {
    /// Reasoning follows.
    fn begin_thought(&mut self) {
        let so_far = Stretch { reasoning: &self.reasoning, sealed: &self.sealed, text: &self.content };
        so_far.note_thought(&mut self.later_thoughts);
    }
}

impl Collector {
    /// Takes the next piece.
    pub fn push(&mut self, delta: Delta) {
        match delta {
            Delta::Text(piece) => {
                let choice = self.choices.entry(piece.choice).or_default();
                choice.content.push_str(&piece.text);
                if let Some(Value::Object(mut probabilities)) = piece.logprobs.map(|boxed| *boxed)
                    && let Some(Value::Array(tokens)) = probabilities.remove("content")
                {
                    choice.logprobs.extend(tokens);
                }
            }
            Delta::Reasoning { choice, text } => {
                let choice = self.choices.entry(choice).or_default();
                choice.begin_thought();
                choice.reasoning.push_str(&text);
                choice.unsealed.push_str(&text);
            }
            Delta::ReasoningSeal { choice, seal } => {
                let choice = self.choices.entry(choice).or_default();
                choice.begin_thought();
                choice.sealed.push(match seal {
                    ReasoningSeal::Signature(signature) => {
                        SealedReasoning::Signed { text: std::mem::take(&mut choice.unsealed), signature }
                    }
                    ReasoningSeal::Redacted(data) => SealedReasoning::Redacted { data },
                });
            }
            Delta::ToolCall(piece) => {
                let calls = &mut self.choices.entry(piece.choice).or_default().tool_calls;
                let call = calls.entry(piece.index).or_insert_with(|| ToolCall {
                    id: String::new(),
                    name: String::new(),
                    arguments: String::new(),
                });
                if let Some(id) = piece.id {
                    call.id = id;
                }
                if let Some(name) = piece.name {
                    call.name = name;
                }
                call.arguments.push_str(&piece.arguments);
            }
            Delta::Finish { choice, reason } => {
                self.choices.entry(choice).or_default().finish_reason = Some(reason)
            }
            Delta::Step(_) => {}
            Delta::Done { usage } => self.usage = usage,
        }
    }

    /// The whole answer by `model`; `None` when any of its choices never finished.
    pub fn finish(self, model: impl Into<String>) -> Option<Generation> {
        let mut answers = Vec::with_capacity(self.choices.len());
        for collected in self.choices.into_values() {
            answers.push(Answer {
                content: collected.content,
                reasoning: Some(collected.reasoning).filter(|text| !text.is_empty()),
                sealed_reasoning: collected.sealed,
                later_thoughts: collected.later_thoughts,
                tool_calls: collected.tool_calls.into_values().collect(),
                finish_reason: collected.finish_reason?,
                logprobs: Some(collected.logprobs)
                    .filter(|tokens| !tokens.is_empty())
                    .map(|tokens| serde_json::json!({ "content": tokens })),
            });
        }
        let mut answers = answers.into_iter();
        Some(Generation {
            model: model.into(),
            answer: answers.next()?,
            alternatives: answers.collect(),
            usage: self.usage,
            warnings: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect(deltas: impl IntoIterator<Item = Delta>) -> Option<Generation> {
        let mut collector = Collector::default();
        deltas.into_iter().for_each(|delta| collector.push(delta));
        collector.finish("m")
    }

    #[test]
    fn pieces_of_text_and_calls_become_one_answer() {
        let usage = Usage {
            prompt_tokens: 3,
            completion_tokens: 2,
            cached_tokens: None,
            reasoning_tokens: None,
            load_time: None,
        };
        let first = ToolCallDelta {
            id: Some("c1".into()),
            name: Some("add".into()),
            arguments: "{\"a\":".into(),
            ..ToolCallDelta::default()
        };
        let rest = ToolCallDelta { arguments: "1}".into(), ..ToolCallDelta::default() };
        let generation = collect([
            Delta::text("Let me "),
            Delta::text("see."),
            Delta::ToolCall(first),
            Delta::ToolCall(rest),
            Delta::Finish { choice: 0, reason: FinishReason::ToolCalls },
            Delta::Done { usage: Some(usage) },
        ]);
        let answer = Answer {
            content: "Let me see.".into(),
            reasoning: None,
            tool_calls: vec![ToolCall { id: "c1".into(), name: "add".into(), arguments: "{\"a\":1}".into() }],
            finish_reason: FinishReason::ToolCalls,
            sealed_reasoning: Vec::new(),
            later_thoughts: Vec::new(),
            logprobs: None,
        };
        let expected = Generation {
            model: "m".into(),
            answer,
            alternatives: Vec::new(),
            usage: Some(usage),
            warnings: Vec::new(),
        };
        assert_eq!(generation, Some(expected));
    }

    #[test]
    fn every_seal_has_the_reasoning_before_it() {
        let thought = |text: &str| Delta::Reasoning { choice: 0, text: text.into() };
        let sealed = |seal| Delta::ReasoningSeal { choice: 0, seal };
        let generation = collect([
            thought("a"),
            thought("b"),
            sealed(ReasoningSeal::Signature("s1".into())),
            sealed(ReasoningSeal::Redacted("d".into())),
            thought("c"),
            sealed(ReasoningSeal::Signature("s2".into())),
            Delta::Finish { choice: 0, reason: FinishReason::Stop },
            Delta::Done { usage: None },
        ]);
        let answer = generation.expect("it is complete").answer;
        assert_eq!(answer.reasoning.as_deref(), Some("abc"));
        let signed = |text: &str, signature: &str| SealedReasoning::Signed {
            text: text.into(),
            signature: signature.into(),
        };
        assert_eq!(
            answer.sealed_reasoning,
            [signed("ab", "s1"), SealedReasoning::Redacted { data: "d".into() }, signed("c", "s2")]
        );
    }

    #[test]
    fn a_thought_after_text_keeps_its_place() {
        let thought = |text: &str| Delta::Reasoning { choice: 0, text: text.into() };
        let sealed = |seal| Delta::ReasoningSeal { choice: 0, seal };
        let generation = collect([
            thought("a"),
            sealed(ReasoningSeal::Signature("s1".into())),
            Delta::text("One."),
            thought("b"),
            thought("c"),
            sealed(ReasoningSeal::Signature("s2".into())),
            Delta::text("Two"),
            Delta::text("."),
            sealed(ReasoningSeal::Redacted("d".into())),
            Delta::text("Three."),
            Delta::Finish { choice: 0, reason: FinishReason::Stop },
            Delta::Done { usage: None },
        ]);
        let answer = generation.expect("it is complete").answer;
        let blocks = &answer.sealed_reasoning;
        let stretch = |reasoning, sealed, text| Stretch { reasoning, sealed, text };
        assert_eq!(
            answer.stretches(),
            [
                stretch("a", &blocks[..1], "One."),
                stretch("bc", &blocks[1..2], "Two."),
                stretch("", &blocks[2..], "Three."),
            ]
        );
        assert_eq!((answer.content.as_str(), answer.reasoning.as_deref()), ("One.Two.Three.", Some("abc")));
    }

    #[test]
    fn an_answer_without_a_finish_is_no_answer() {
        assert_eq!(collect([Delta::text("half a sent")]), None);
        assert_eq!(collect([Delta::Done { usage: None }]), None);
    }

    #[test]
    fn several_answers_stay_apart() {
        let of = |choice, text: &str| Delta::Text(TextDelta { choice, text: text.into(), logprobs: None });
        let stop = |choice| Delta::Finish { choice, reason: FinishReason::Stop };
        let generation = collect([of(1, "b"), of(0, "a"), stop(0), stop(1), Delta::Done { usage: None }]);
        let texts: Vec<String> =
            generation.iter().flat_map(Generation::answers).map(|answer| answer.content.clone()).collect();
        assert_eq!(texts, ["a", "b"]);
    }
}

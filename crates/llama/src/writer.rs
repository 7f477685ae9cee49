//! Turns the tokens of an answer into deltas: characters, reasoning, tool calls, stop strings, probabilities. Pure.

use hob_core::{Delta, FinishReason, TextDelta, ToolCallDelta, random_id};
use serde_json::{Value, json};

use crate::reasoning::{AnswerPart, ReasoningParser, Thought};
use crate::stops::StopMatcher;
use crate::tool_parser::{Piece, ToolParser};
use crate::tools::ToolFormat;
use crate::utf8::Utf8Buffer;

#[derive(Debug)]
pub(crate) struct Writer {
    choice: u32,
    utf8: Utf8Buffer,
    reasoning: ReasoningParser,
    stops: StopMatcher,
    tools: Option<ToolParser>,
    /// Probabilities of held text.
    probabilities: Vec<Value>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Reading {
    pub(crate) stops: Vec<String>,
    pub(crate) tools: Option<ToolFormat>,
    pub(crate) thought: Thought,
}

/// The result of a token.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub(crate) deltas: Vec<Delta>,
    /// Whether a stop string ended the answer.
    pub(crate) stopped: bool,
}

impl Writer {
    pub(crate) fn new(choice: u32, reading: &Reading) -> Self {
        Writer {
            choice,
            utf8: Utf8Buffer::default(),
            reasoning: ReasoningParser::new(reading.thought),
            stops: StopMatcher::new(&reading.stops),
            tools: reading.tools.map(ToolParser::new),
            probabilities: Vec::new(),
        }
    }

    /// Adds the bytes of a token and, if requested, its probabilities.
    pub(crate) fn push(&mut self, bytes: &[u8], probabilities: Option<Value>) -> Written {
        self.probabilities.extend(probabilities);
        let text = self.utf8.push(bytes);
        let mut written = Written::default();
        if text.is_empty() {
            return written;
        }
        for part in self.reasoning.push(text) {
            self.add_part(part, &mut written);
        }
        written
    }

    /// Whether what the model writes is reasoning.
    pub(crate) fn is_thinking(&self) -> bool {
        self.reasoning.is_open()
    }

    fn add_part(&mut self, part: AnswerPart, written: &mut Written) {
        match part {
            AnswerPart::Reasoning(text) => {
                // The format has no probabilities for reasoning.
                self.probabilities.clear();
                written.deltas.push(Delta::Reasoning { choice: self.choice, text });
            }
            AnswerPart::Text(text) => self.words(text, written),
        }
    }

    fn words(&mut self, text: String, written: &mut Written) {
        let Some(parser) = &mut self.tools else {
            return self.text(text, written);
        };
        for piece in parser.push(&text) {
            self.piece(piece, written);
            if written.stopped {
                break;
            }
        }
    }

    /// The text of the current tool call.
    pub(crate) fn call_text(&self) -> Option<&str> {
        self.tools.as_ref().and_then(ToolParser::call_text)
    }

    /// Ends the answer with `reason`. Returns the remaining deltas.
    pub(crate) fn finish(&mut self, reason: FinishReason) -> Vec<Delta> {
        let mut written = Written::default();
        if let Some(held) = self.reasoning.finish() {
            self.add_part(held, &mut written);
        }
        let left = self.tools.as_mut().map(ToolParser::finish).unwrap_or_default();
        for piece in left {
            self.piece(piece, &mut written);
        }
        let held = if written.stopped { String::new() } else { self.stops.finish() };
        self.emit(held, &mut written);
        let called = self.tools.as_ref().is_some_and(|parser| parser.calls() > 0);
        let reason = match reason {
            FinishReason::Stop if called => FinishReason::ToolCalls,
            FinishReason::Stop => {
                self.stops.take_matched().map_or(FinishReason::Stop, FinishReason::StopSequence)
            }
            other => other,
        };
        written.deltas.push(Delta::Finish { choice: self.choice, reason });
        written.deltas
    }

    fn piece(&mut self, piece: Piece, written: &mut Written) {
        let delta = match piece {
            Piece::Text(text) => return self.text(text, written),
            Piece::Call { index, name } => ToolCallDelta {
                choice: self.choice,
                index,
                id: Some(random_id("call_")),
                name: Some(name),
                arguments: String::new(),
            },
            Piece::Arguments { index, text } => {
                ToolCallDelta { choice: self.choice, index, arguments: text, ..ToolCallDelta::default() }
            }
        };
        // The format has no probabilities for calls.
        self.probabilities.clear();
        written.deltas.push(Delta::ToolCall(delta));
    }

    fn text(&mut self, text: String, written: &mut Written) {
        let passed = self.stops.push(text);
        written.stopped = passed.stopped;
        self.emit(passed.text, written);
    }

    fn emit(&mut self, text: String, written: &mut Written) {
        if text.is_empty() {
            return;
        }
        let tokens = std::mem::take(&mut self.probabilities);
        written.deltas.push(Delta::Text(TextDelta {
            choice: self.choice,
            text,
            logprobs: (!tokens.is_empty()).then(|| Box::new(json!({ "content": tokens }))),
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(deltas: &[Delta]) -> String {
        deltas
            .iter()
            .map(|delta| match delta {
                Delta::Text(piece) => piece.text.as_str(),
                _ => "",
            })
            .collect()
    }

    #[test]
    fn an_answer_ends_before_its_stop_string() {
        let mut writer = Writer::new(0, &Reading { stops: vec!["STOP".into()], ..Reading::default() });
        assert_eq!(text(&writer.push(b"one ST", None).deltas), "one ");
        let written = writer.push(b"OP two", None);
        assert!(written.stopped && written.deltas.is_empty());
        let finish = Delta::Finish { choice: 0, reason: FinishReason::StopSequence("STOP".into()) };
        assert_eq!(writer.finish(FinishReason::Stop), [finish]);
    }

    #[test]
    fn probabilities_are_sent_with_their_text() {
        let mut writer = Writer::new(1, &Reading { stops: vec!["xyz".into()], ..Reading::default() });
        assert!(writer.push(b"x", Some(json!(1))).deltas.is_empty());
        let expected = Delta::Text(TextDelta {
            choice: 1,
            text: "xa".into(),
            logprobs: Some(Box::new(json!({"content": [1, 2]}))),
        });
        assert_eq!(writer.push(b"a", Some(json!(2))).deltas, [expected]);
    }

    #[test]
    fn reasoning_comes_before_the_answer() {
        let mut writer = Writer::new(0, &Reading { stops: vec!["STOP".into()], ..Reading::default() });
        let thought = |text: &str| Delta::Reasoning { choice: 0, text: text.into() };
        assert_eq!(writer.push(b"<think>no ST", Some(json!(1))).deltas, [thought("no ST")]);
        let written = writer.push(b"OP</think>\n\nfour", Some(json!(2)));
        let four = TextDelta { choice: 0, text: "four".into(), logprobs: None };
        assert_eq!((written.stopped, written.deltas), (false, vec![thought("OP"), Delta::Text(four)]));
        let mut cut_off = Writer::new(0, &Reading { thought: Thought::Begun, ..Reading::default() });
        assert_eq!(cut_off.push(b"hm </", None).deltas, [thought("hm")]);
        let finish = Delta::Finish { choice: 0, reason: FinishReason::Length };
        assert_eq!(cut_off.finish(FinishReason::Length), [thought(" </"), finish]);
    }

    #[test]
    fn a_call_ends_the_answer_as_a_call() {
        let mut writer = Writer::new(0, &Reading { tools: Some(ToolFormat::Tagged), ..Reading::default() });
        let written = writer.push(br#"<tool_call>{"name": "f", "arguments": {"a":1}}</tool_call>"#, None);
        assert!(
            matches!(&written.deltas[0], Delta::ToolCall(ToolCallDelta { index: 0, id: Some(_), name: Some(name), .. }) if name == "f")
        );
        assert!(
            matches!(&written.deltas[1], Delta::ToolCall(ToolCallDelta { arguments, id: None, .. }) if arguments == "{\"a\":1}")
        );
        let finish = Delta::Finish { choice: 0, reason: FinishReason::ToolCalls };
        assert_eq!(writer.finish(FinishReason::Stop), [finish]);
    }
}

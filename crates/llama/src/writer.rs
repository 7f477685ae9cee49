//! Turns the tokens of an answer into deltas: characters, reasoning, tool calls, stop strings, probabilities. Pure.

use hob_core::{Delta, FinishReason, TextDelta, ToolCallDelta, random_id};
use serde_json::{Value, json};

use crate::chat::{AnswerFormat, AnswerParser, AnswerPart};
use crate::stops::{StopMatcher, StopStrings};
use crate::utf8::Utf8Buffer;

#[derive(Debug)]
pub(crate) struct Writer {
    choice: u32,
    utf8: Utf8Buffer,
    /// The stop strings of the format, in the whole text.
    ends: StopMatcher,
    parser: Option<AnswerParser>,
    format: Option<AnswerFormat>,
    /// The stop strings of the caller, in the words.
    stops: StopMatcher,
    /// Whether an answer may have several calls; `None` if it has no tools.
    tools: Option<bool>,
    /// Blanks at the start, which are dropped before a call.
    blanks: String,
    has_words: bool,
    is_stopped: bool,
    /// Probabilities of held text.
    probabilities: Vec<Value>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Reading {
    pub(crate) stops: StopStrings,
    /// `None` if the answer is text as it stands.
    pub(crate) format: Option<AnswerFormat>,
    /// Whether an answer may have several calls; `None` if it has no tools.
    pub(crate) tools: Option<bool>,
}

/// The result of a token.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub(crate) deltas: Vec<Delta>,
    /// Whether the answer ends here.
    pub(crate) stopped: bool,
}

impl Writer {
    pub(crate) fn new(choice: u32, reading: &Reading) -> Self {
        let ends = reading.format.as_ref().map(AnswerFormat::stops).unwrap_or_default();
        Writer {
            choice,
            utf8: Utf8Buffer::default(),
            ends: StopMatcher::new(&StopStrings::new(ends)),
            parser: reading.format.as_ref().map(AnswerParser::new),
            format: reading.format.clone(),
            stops: StopMatcher::new(&reading.stops),
            tools: reading.tools,
            blanks: String::new(),
            has_words: false,
            is_stopped: false,
            probabilities: Vec::new(),
        }
    }

    pub(crate) fn choice(&self) -> u32 {
        self.choice
    }

    /// Adds the bytes of a token and, if requested, its probabilities.
    pub(crate) fn push(&mut self, bytes: &[u8], probabilities: Option<Value>) -> Written {
        self.probabilities.extend(probabilities);
        let text = self.utf8.push(bytes);
        let mut written = Written::default();
        if text.is_empty() {
            return written;
        }
        let passed = self.ends.push(text);
        self.read(&passed.text, &mut written);
        written.stopped |= passed.stopped;
        written
    }

    /// Whether what the model writes is reasoning.
    pub(crate) fn is_thinking(&self) -> bool {
        let format = self.format.as_ref().filter(|format| format.thinks());
        format.zip(self.parser.as_ref()).is_some_and(|(format, parser)| format.is_thought(parser.text()))
    }

    fn read(&mut self, text: &str, written: &mut Written) {
        let Some(parser) = &mut self.parser else { return self.words(text.to_owned(), written) };
        let parts = if text.is_empty() { Vec::new() } else { parser.push(text) };
        self.parts(parts, written);
    }

    fn parts(&mut self, parts: Vec<AnswerPart>, written: &mut Written) {
        for part in parts {
            if written.stopped {
                break;
            }
            self.part(part, written);
        }
        self.is_stopped |= written.stopped;
    }

    fn part(&mut self, part: AnswerPart, written: &mut Written) {
        let delta = match part {
            AnswerPart::Text(text) => return self.words(text, written),
            AnswerPart::Reasoning(text) => Delta::Reasoning { choice: self.choice, text },
            // The format may have more calls than the caller wants.
            AnswerPart::Call { index, .. } if index > 0 && self.tools != Some(true) => {
                written.stopped = true;
                return;
            }
            AnswerPart::Call { index, name, id } => {
                self.blanks.clear();
                Delta::ToolCall(ToolCallDelta {
                    choice: self.choice,
                    index,
                    id: Some(id.unwrap_or_else(|| random_id("call_"))),
                    name: Some(name),
                    arguments: String::new(),
                })
            }
            AnswerPart::Arguments { index, text } => Delta::ToolCall(ToolCallDelta {
                choice: self.choice,
                index,
                arguments: text,
                ..ToolCallDelta::default()
            }),
        };
        // There are no probabilities for reasoning and calls.
        self.probabilities.clear();
        written.deltas.push(delta);
    }

    /// The text after the thought; `None` while the thought lasts.
    pub(crate) fn answer_text(&self) -> Option<&str> {
        let text = self.parser.as_ref()?.text();
        let start = self.format.as_ref()?.answer_start(text)?;
        Some(&text[start.text..])
    }

    /// The whole text, and the place from which calls may begin.
    pub(crate) fn callable_text(&self) -> Option<(&str, usize)> {
        let text = self.parser.as_ref()?.text();
        let start = self.format.as_ref()?.answer_start(text)?;
        Some((text, start.mark))
    }

    /// Ends the answer with `reason`. Returns the remaining deltas.
    pub(crate) fn finish(&mut self, reason: FinishReason) -> Vec<Delta> {
        let mut written = Written::default();
        if !self.is_stopped {
            let held = self.ends.finish();
            self.read(&held, &mut written);
            let complete = reason == FinishReason::Stop;
            let left = self.parser.as_mut().map(|parser| parser.finish(complete)).unwrap_or_default();
            self.parts(left, &mut written);
        }
        let calls = self.parser.as_ref().map_or(0, AnswerParser::calls);
        if calls == 0 && !self.is_stopped {
            let blanks = std::mem::take(&mut self.blanks);
            self.text(blanks, &mut written);
        }
        let held = if self.is_stopped { String::new() } else { self.stops.finish() };
        self.emit(held, &mut written);
        let reason = match reason {
            FinishReason::Stop if calls > 0 => FinishReason::ToolCalls,
            FinishReason::Stop => {
                self.stops.take_matched().map_or(FinishReason::Stop, FinishReason::StopSequence)
            }
            other => other,
        };
        written.deltas.push(Delta::Finish { choice: self.choice, reason });
        written.deltas
    }

    fn words(&mut self, text: String, written: &mut Written) {
        if self.has_words || self.tools.is_none() {
            return self.text(text, written);
        }
        self.blanks.push_str(&text);
        if !text.trim().is_empty() {
            self.has_words = true;
            let text = std::mem::take(&mut self.blanks);
            self.text(text, written);
        }
    }

    fn text(&mut self, text: String, written: &mut Written) {
        let passed = self.stops.push(text);
        written.stopped |= passed.stopped;
        self.is_stopped |= passed.stopped;
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
    use crate::chat::{Calling, ChatTemplate, Conversation};

    fn text(deltas: &[Delta]) -> String {
        deltas
            .iter()
            .map(|delta| match delta {
                Delta::Text(piece) => piece.text.as_str(),
                _ => "",
            })
            .collect()
    }

    fn stops(stop: &str) -> StopStrings {
        StopStrings::new(&[stop.to_owned()])
    }

    #[test]
    fn an_answer_ends_before_its_stop_string() {
        let mut writer = Writer::new(0, &Reading { stops: stops("STOP"), ..Reading::default() });
        assert_eq!(text(&writer.push(b"one ST", None).deltas), "one ");
        let written = writer.push(b"OP two", None);
        assert!(written.stopped && written.deltas.is_empty());
        let finish = Delta::Finish { choice: 0, reason: FinishReason::StopSequence("STOP".into()) };
        assert_eq!(writer.finish(FinishReason::Stop), [finish]);
    }

    #[test]
    fn probabilities_are_sent_with_their_text() {
        let mut writer = Writer::new(1, &Reading { stops: stops("xyz"), ..Reading::default() });
        assert!(writer.push(b"x", Some(json!(1))).deltas.is_empty());
        let expected = Delta::Text(TextDelta {
            choice: 1,
            text: "xa".into(),
            logprobs: Some(Box::new(json!({"content": [1, 2]}))),
        });
        assert_eq!(writer.push(b"a", Some(json!(2))).deltas, [expected]);
    }

    fn format(calling: Calling) -> AnswerFormat {
        let message = json!({"role": "user", "content": "Hi"});
        let function = json!({"name": "f", "parameters": {"type": "object"}});
        let tools = [json!({"type": "function", "function": function})];
        let tools = if calling == Calling::Never { &[][..] } else { &tools };
        let conversation = Conversation {
            messages: &[message],
            tools,
            signatures: &serde_json::Map::new(),
            variables: &serde_json::Map::new(),
            calling,
        };
        let common = ChatTemplate::common().expect("a format");
        common.render(&conversation).expect("renders").format
    }

    #[test]
    fn reasoning_comes_before_the_answer() {
        let words = format(Calling::Never);
        let reading = Reading { stops: stops("STOP"), format: Some(words.clone()), ..Reading::default() };
        let mut writer = Writer::new(0, &reading);
        let thought = |text: &str| Delta::Reasoning { choice: 0, text: text.into() };
        assert_eq!(writer.push(b"<think>no ST", Some(json!(1))).deltas, [thought("no ST")]);
        let written = writer.push(b"OP</think>\n\nfour", Some(json!(2)));
        let four = TextDelta { choice: 0, text: "four".into(), logprobs: None };
        assert_eq!((written.stopped, written.deltas), (false, vec![thought("OP"), Delta::Text(four)]));
        let begun = Reading { format: Some(words.after("<think>")), ..Reading::default() };
        let mut cut_off = Writer::new(0, &begun);
        assert_eq!(cut_off.push(b"hm </", None).deltas, [thought("hm")]);
        let finish = Delta::Finish { choice: 0, reason: FinishReason::Length };
        assert_eq!(cut_off.finish(FinishReason::Length), [thought(" </"), finish]);
    }

    #[test]
    fn a_call_ends_the_answer_as_a_call() {
        let format = Some(format(Calling::Possible { several: true }));
        for (tools, calls) in [(Some(true), 2), (Some(false), 1)] {
            let mut writer = Writer::new(0, &Reading { format: format.clone(), tools, ..Reading::default() });
            let call = br#"<tool_call>{"name": "f", "arguments": {"a":1}}</tool_call>"#;
            let mut written = writer.push(b"\n", None);
            written.deltas.extend(writer.push(call, None).deltas);
            assert!(
                matches!(&written.deltas[0], Delta::ToolCall(ToolCallDelta { index: 0, id: Some(_), name: Some(name), .. }) if name == "f")
            );
            assert!(
                matches!(&written.deltas[1], Delta::ToolCall(ToolCallDelta { arguments, id: None, .. }) if arguments == "{\"a\":1}")
            );
            let second = writer.push(call, None);
            assert_eq!((second.stopped, second.deltas.len()), (calls == 1, 2 * (calls - 1)));
            let finish = Delta::Finish { choice: 0, reason: FinishReason::ToolCalls };
            assert_eq!(writer.finish(FinishReason::Stop), [finish]);
        }
    }
}

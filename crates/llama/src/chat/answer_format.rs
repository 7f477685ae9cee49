//! How an answer to a rendered conversation is written: its parser, its marks, and what begins a call.

use std::sync::Arc;

use serde::Deserialize;
use serde::de::Error as _;
use serde_json::Value;

use super::call_grammar::CallGrammar;
use super::native::{NativeFormat, NativeParser};

/// The format of an answer. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct AnswerFormat {
    shared: Arc<FormatDetails>,
    /// Whether the prompt ends inside a thought.
    in_thought: bool,
    /// Whether the prompt is of another template, so that the parser does not know the beginning of the thought.
    is_foreign: bool,
}

#[derive(Debug)]
struct FormatDetails {
    native: NativeFormat,
    read: Details,
    grammar: Option<CallGrammar>,
    /// Whether the answer has nothing but reasoning and words.
    ends_as_text: bool,
    /// The characters that can end the words of an answer; `None` if that is not known.
    word_ends: Option<Vec<char>>,
    /// The same of its reasoning.
    reasoning_ends: Option<Vec<char>>,
}

/// The details of the chat layer.
#[derive(Debug, Deserialize)]
struct Details {
    parser: String,
    grammar: String,
    triggers: Vec<Trigger>,
    preserved_tokens: Vec<String>,
    stops: Vec<String>,
    thinks: bool,
    thinking_start: String,
    thinking_ends: Vec<String>,
}

/// The kinds of text in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextKind {
    Words,
    Reasoning,
}

/// What begins a call.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", content = "value", rename_all = "snake_case")]
pub(crate) enum Trigger {
    Word(String),
    /// A regular expression; the call begins with its first group if it has one.
    Pattern(String),
    FullPattern(String),
}

impl AnswerFormat {
    /// Reads the details that the chat layer gives with a prompt.
    pub(super) fn read(details: &str, prompt: &str) -> Result<Self, serde_json::Error> {
        let read: Details = serde_json::from_str(details)?;
        let native = NativeFormat::new(details).map_err(serde_json::Error::custom)?;
        let parser: Value = match read.parser.as_str() {
            "" => Value::Null,
            saved => serde_json::from_str(saved)?,
        };
        let grammar = match read.grammar.as_str() {
            "" => None,
            rules => Some(CallGrammar::read(rules, &parser)?).filter(CallGrammar::has_calls),
        };
        let in_thought = read.is_in_thought(prompt);
        let word_ends = ends_of(&parser, "content");
        let reasoning_ends = ends_of(&parser, "reasoning");
        let ends_as_text = word_ends.as_ref().is_some_and(Vec::is_empty) && has_only_words(&parser);
        let shared =
            Arc::new(FormatDetails { native, read, grammar, ends_as_text, word_ends, reasoning_ends });
        Ok(AnswerFormat { shared, in_thought, is_foreign: false })
    }

    /// The format for the answer to `prompt`, which another template rendered.
    pub(crate) fn after(self, prompt: &str) -> Self {
        let in_thought = self.shared.read.is_in_thought(prompt);
        AnswerFormat { in_thought, is_foreign: true, ..self }
    }

    /// A parser for one answer.
    pub(super) fn parser(&self) -> Option<NativeParser> {
        self.shared.native.parser()
    }

    /// Text of the prompt that the parser must see before the answer.
    pub(super) fn prefix(&self) -> &str {
        if self.in_thought && self.is_foreign { &self.shared.read.thinking_start } else { "" }
    }

    /// Whether the answer has nothing but reasoning and words.
    pub(crate) fn ends_as_text(&self) -> bool {
        self.shared.ends_as_text
    }

    /// Whether text after text of this kind is of the same kind, without a doubt.
    pub(super) fn continues(&self, kind: TextKind, text: &str) -> bool {
        let ends = match kind {
            TextKind::Words => &self.shared.word_ends,
            TextKind::Reasoning => &self.shared.reasoning_ends,
        };
        ends.as_ref().is_some_and(|ends| !text.contains(&ends[..]))
    }

    /// Whether the format has reasoning.
    pub(crate) fn thinks(&self) -> bool {
        self.shared.read.thinks
    }

    /// The grammar of calls, if the answer may have some.
    pub(crate) fn grammar(&self) -> Option<&CallGrammar> {
        self.shared.grammar.as_ref()
    }

    pub(crate) fn triggers(&self) -> &[Trigger] {
        &self.shared.read.triggers
    }

    /// Texts that end the answer, beside the model's own end.
    pub(crate) fn stops(&self) -> &[String] {
        &self.shared.read.stops
    }

    /// The texts that mark parts of the answer, which must be visible.
    pub(crate) fn marks(&self) -> impl Iterator<Item = &str> {
        let read = &self.shared.read;
        let thinking =
            std::iter::once(&read.thinking_start).chain(&read.thinking_ends).map(|mark| mark.trim());
        let kept = read.preserved_tokens.iter().map(String::as_str);
        let mut seen = Vec::new();
        kept.chain(thinking).filter(move |mark| {
            let is_new = !mark.is_empty() && !seen.contains(mark);
            seen.push(*mark);
            is_new
        })
    }

    /// Whether the prompt ends inside a thought.
    pub(crate) fn is_in_thought(&self) -> bool {
        self.in_thought
    }

    /// Whether the text of an answer so far is a thought.
    pub(crate) fn is_thought(&self, text: &str) -> bool {
        (self.in_thought || !text.trim_start().is_empty()) && self.answer_start(text).is_none()
    }

    /// Where the answer proper begins in its text: after the thought, if there is one. `None` while it lasts.
    pub(crate) fn answer_start(&self, text: &str) -> Option<AnswerStart> {
        let read = &self.shared.read;
        let opening = read.thinking_start.as_str();
        let begins = text.trim_start();
        let thought = if self.in_thought {
            0
        } else if opening.is_empty() || read.thinking_ends.is_empty() {
            return Some(AnswerStart { mark: 0, text: 0 });
        } else if begins.starts_with(opening) {
            text.len() - begins.len() + opening.len()
        } else if opening.starts_with(begins) {
            return None;
        } else {
            return Some(AnswerStart { mark: 0, text: 0 });
        };
        let ends = read
            .thinking_ends
            .iter()
            .filter_map(|end| Some((text[thought..].find(end.as_str())?, end.len())));
        let (at, length) = ends.min()?;
        Some(AnswerStart { mark: thought + at, text: thought + at + length })
    }
}

/// The start of the answer proper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AnswerStart {
    /// The mark that ends the thought, which may be that of a call.
    pub(crate) mark: usize,
    /// After the mark.
    pub(crate) text: usize,
}

impl Details {
    fn is_in_thought(&self, prompt: &str) -> bool {
        let (opening, prompt) = (self.thinking_start.trim(), prompt.trim_end());
        if opening.is_empty() {
            // Without a mark that begins it, every answer begins with a thought, unless the prompt ends it.
            return !self.thinking_ends.is_empty()
                && !self.thinking_ends.iter().any(|end| prompt.ends_with(end.trim()));
        }
        prompt.ends_with(opening)
    }
}

/// The tags of a parser with what they contain.
fn tags(parser: &Value) -> impl Iterator<Item = (&str, Option<&Value>)> {
    let nodes = parser["parsers"].as_array().map(Vec::as_slice).unwrap_or_default();
    let at = |id: &Value| nodes.get(usize::try_from(id.as_u64()?).ok()?);
    let inner = move |tag: &Value| {
        let mut node = at(&tag["child"])?;
        // Named rules stand for what they contain.
        for _ in 0..8 {
            node = match node["type"].as_str() {
                Some("rule") => at(&node["child"])?,
                Some("ref") => at(&parser["rules"][node["name"].as_str()?])?,
                _ => return Some(node),
            };
        }
        None
    };
    nodes
        .iter()
        .filter(|node| node["type"] == "tag")
        .map(move |tag| (tag["tag"].as_str().unwrap_or_default(), inner(tag)))
}

/// Whether a parser finds nothing but reasoning and words.
fn has_only_words(parser: &Value) -> bool {
    tags(parser).all(|(tag, _)| ["content", "reasoning", "reasoning-block"].contains(&tag))
}

/// The first characters of the marks that end what a parser gives this tag.
fn ends_of(parser: &Value, tag: &str) -> Option<Vec<char>> {
    let mut ends = Vec::new();
    for (_, inner) in tags(parser).filter(|(name, _)| *name == tag) {
        let inner = inner.filter(|inner| inner["type"] == "until")?;
        for mark in inner["delimiters"].as_array()? {
            ends.extend(mark.as_str()?.chars().next());
        }
    }
    Some(ends)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn format(prompt: &str, start: &str, ends: &[&str]) -> AnswerFormat {
        let details = json!({"format": 0, "generation_prompt": "", "parser": "", "grammar": "", "triggers": [], "preserved_tokens": ["<a>", "<think>"], "stops": [],
            "thinks": true, "thinking_start": start, "thinking_ends": ends});
        AnswerFormat::read(&details.to_string(), prompt).expect("details")
    }

    #[test]
    fn the_answer_starts_after_the_thought() {
        let at = |mark, text| Some(AnswerStart { mark, text });
        let begun = format("user: hi<think>\n", "<think>", &["</think>", "<call>"]);
        assert!(begun.is_in_thought());
        assert_eq!(begun.answer_start("hm"), None);
        assert_eq!(begun.answer_start("hm</think>yes"), at(2, 10));
        assert_eq!(begun.answer_start("hm<call></think>"), at(2, 8));
        let open = format("user: hi", "<think>", &["</think>"]);
        assert_eq!(open.answer_start("\n<thi"), None);
        assert_eq!(open.answer_start("<think>a</think>"), at(8, 16));
        assert_eq!(open.answer_start("yes <think>"), at(0, 0));
        assert!(
            begun.is_thought("")
                && open.is_thought("<think>a")
                && !open.is_thought("")
                && !open.is_thought("<think>a</think>")
        );
    }

    #[test]
    fn without_a_mark_that_begins_it_the_answer_begins_with_the_thought() {
        let unmarked = format("user: hi", "", &["[FINAL]"]);
        assert!(unmarked.is_in_thought() && unmarked.is_thought(""));
        assert_eq!(unmarked.answer_start("hm"), None);
        assert_eq!(unmarked.answer_start("hm[FINAL]yes"), Some(AnswerStart { mark: 2, text: 9 }));
        assert!(!format("user: hi[FINAL]\n", "", &["[FINAL]"]).is_in_thought());
        assert!(!format("user: hi", "", &[]).is_in_thought());
    }

    #[test]
    fn a_mark_is_listed_once() {
        let marks: Vec<String> = format("", "<think>", &["</think>"]).marks().map(str::to_owned).collect();
        assert_eq!(marks, ["<a>", "<think>", "</think>"]);
    }
}

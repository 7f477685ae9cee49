//! Parses an answer as it is written: words, reasoning, tool calls. However the text is split, the parts are the same.

use serde::Deserialize;

use super::answer_format::{AnswerFormat, TextKind};
use super::native::{CallLimits, NativeParser};

/// Enough for an answer that fills a large context. The stack is that of the thread that writes answers.
const LIMITS: CallLimits =
    CallLimits { steps: 20_000_000, milliseconds: 2_000, bytes: usize::MAX, stack: 512 << 10 };

/// Arguments of calls are parsed again when the text has grown by this part of it. A fixed amount would take the square of their
/// length.
const GROWTH: usize = 64;

/// Text that does not fit the format is held back for this many bytes, in case that the rest explains it.
const MAX_HELD: usize = 256;

/// A part of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AnswerPart {
    Reasoning(String),
    Text(String),
    /// The start of a call, from zero. The id is that of the model, if it writes one.
    Call {
        index: u32,
        name: String,
        id: Option<String>,
    },
    /// A part of the arguments of a call.
    Arguments {
        index: u32,
        text: String,
    },
}

/// What is new in an answer.
#[derive(Debug, Deserialize)]
struct ParsedDeltas {
    reasoning: String,
    content: String,
    calls: Vec<ParsedCall>,
}

#[derive(Debug, Deserialize)]
struct ParsedCall {
    index: u32,
    name: Option<String>,
    #[serde(default)]
    id: String,
    #[serde(default)]
    arguments: String,
}

#[derive(Debug)]
pub(crate) struct AnswerParser {
    native: Option<NativeParser>,
    format: AnswerFormat,
    /// All text so far.
    text: String,
    /// The text so far that was returned.
    returned: String,
    has_reasoning: bool,
    /// Blanks after the reasoning so far, which are dropped at its end.
    blanks: String,
    calls: u32,
    /// How much text there was when it first did not fit.
    failed_at: Option<usize>,
    /// From here on, text is returned as it comes.
    is_plain: bool,
    /// The kind of the last text, if it was that as it stood.
    last: Option<TextKind>,
    /// Text that is not parsed yet.
    waiting: String,
    #[cfg(test)]
    pub(super) parses: usize,
}

impl AnswerParser {
    pub(crate) fn new(format: &AnswerFormat) -> Self {
        let mut native = format.parser();
        if let (Some(native), prefix) = (&mut native, format.prefix())
            && !prefix.is_empty()
        {
            // A prefix is the beginning of a thought, which alone makes no part.
            let _ = native.push(prefix, LIMITS);
        }
        AnswerParser {
            is_plain: native.is_none(),
            native,
            format: format.clone(),
            text: String::new(),
            returned: String::new(),
            has_reasoning: false,
            blanks: String::new(),
            calls: 0,
            failed_at: None,
            last: None,
            waiting: String::new(),
            #[cfg(test)]
            parses: 0,
        }
    }

    /// The number of calls.
    pub(crate) fn calls(&self) -> u32 {
        self.calls
    }

    /// All text so far.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn push(&mut self, text: &str) -> Vec<AnswerPart> {
        self.text.push_str(text);
        if self.is_plain {
            return self.as_text(text.to_owned());
        }
        let Some(native) = &mut self.native else { return Vec::new() };
        // The native parser reads all text again, which is not necessary while nothing else can come.
        if let Some(kind) = self.last.filter(|kind| self.format.continues(*kind, text))
            && native.add(text, kind == TextKind::Reasoning)
        {
            return match kind {
                TextKind::Words => self.as_text(text.to_owned()),
                TextKind::Reasoning => self.as_reasoning(text).into_iter().collect(),
            };
        }
        self.waiting.push_str(text);
        if self.calls > 0 && self.waiting.len() < self.text.len() / GROWTH {
            return Vec::new();
        }
        self.parse()
    }

    /// Parses the waiting text.
    fn parse(&mut self) -> Vec<AnswerPart> {
        let Some(native) = &mut self.native else { return Vec::new() };
        let text = std::mem::take(&mut self.waiting);
        #[cfg(test)]
        {
            self.parses += 1;
        }
        match native.push(&text, LIMITS) {
            Ok(deltas) => {
                self.failed_at = None;
                self.parts(&deltas, &text)
            }
            Err(_) => {
                let failed_at = *self.failed_at.get_or_insert(self.text.len());
                if self.text.len() - failed_at > MAX_HELD { self.give_up() } else { Vec::new() }
            }
        }
    }

    /// The answer has ended; `complete` if the model ended it.
    pub(crate) fn finish(&mut self, complete: bool) -> Vec<AnswerPart> {
        let mut parts = if self.waiting.is_empty() { Vec::new() } else { self.parse() };
        if self.is_plain {
            return parts;
        }
        let Some(native) = &mut self.native else { return parts };
        let last = match native.finish(complete, LIMITS) {
            Ok(deltas) if self.failed_at.is_none() || complete => self.parts(&deltas, ""),
            _ => self.give_up(),
        };
        parts.extend(last);
        parts
    }

    /// What is new after `text`.
    fn parts(&mut self, deltas: &str, text: &str) -> Vec<AnswerPart> {
        let Ok(new) = serde_json::from_str::<ParsedDeltas>(deltas) else { return Vec::new() };
        self.last = match (new.reasoning.as_str(), new.content.as_str()) {
            _ if text.is_empty() || !new.calls.is_empty() => None,
            ("", words) if words == text => Some(TextKind::Words),
            (reasoning, "") if reasoning == text => Some(TextKind::Reasoning),
            _ => None,
        };
        let mut parts = Vec::new();
        parts.extend(self.as_reasoning(&new.reasoning));
        if !new.content.is_empty() {
            self.is_plain = self.format.ends_as_text();
            parts.extend(self.as_text(new.content));
        }
        for ParsedCall { index, name, id, arguments } in new.calls {
            if let Some(name) = name {
                self.calls = index + 1;
                parts.push(AnswerPart::Call { index, name, id: Some(id).filter(|id| !id.is_empty()) });
            }
            if !arguments.is_empty() {
                parts.push(AnswerPart::Arguments { index, text: arguments });
            }
        }
        parts
    }

    /// Reasoning without the blanks around it.
    fn as_reasoning(&mut self, text: &str) -> Option<AnswerPart> {
        let text = if self.has_reasoning { text } else { text.trim_start() };
        let words = text.trim_end();
        if words.is_empty() {
            if self.has_reasoning {
                self.blanks.push_str(text);
            }
            return None;
        }
        self.has_reasoning = true;
        let reasoning = std::mem::take(&mut self.blanks) + words;
        self.blanks.push_str(&text[words.len()..]);
        Some(AnswerPart::Reasoning(reasoning))
    }

    fn as_text(&mut self, text: String) -> Vec<AnswerPart> {
        self.returned.push_str(&text);
        if text.is_empty() { Vec::new() } else { vec![AnswerPart::Text(text)] }
    }

    /// The text does not fit the format. What was not returned becomes text; after a call, it is dropped.
    fn give_up(&mut self) -> Vec<AnswerPart> {
        self.is_plain = true;
        if self.calls > 0 {
            self.native = None;
            self.is_plain = false;
            return Vec::new();
        }
        let from = if !self.returned.is_empty() {
            // The returned text is in the answer as it was written, at its last place.
            let tail = last_bytes(&self.returned, 64);
            self.text.rfind(tail).map_or(self.text.len(), |at| at + tail.len())
        } else if self.has_reasoning {
            self.format.answer_start(&self.text).map_or(self.text.len(), |start| start.text)
        } else {
            0
        };
        let left = self.text[from..].to_owned();
        self.as_text(left)
    }
}

/// The last bytes of a text, from the start of a character.
fn last_bytes(text: &str, count: usize) -> &str {
    let mut from = text.len().saturating_sub(count);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    &text[from..]
}

//! Distinguishes control tokens of a model from the same text written by callers.
//!
//! A chat template writes control tokens such as `<|im_end|>` as text, and so can every caller. So text of callers that spells a
//! control token is marked before the template is rendered, and marked text stays text in the tokeniser. Nothing else changes, so
//! templates can still inspect messages. Pure: knows nothing of requests or llama.cpp.

use std::borrow::Cow;

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::{Map, Value};

/// The marks around text. Unicode reserves these characters for use inside a program.
const OPEN: char = '\u{FDD0}';
const CLOSE: char = '\u{FDD1}';

#[derive(Debug)]
pub(crate) struct ControlTokens {
    /// `None` if the model has none.
    spellings: Option<AhoCorasick>,
}

/// A span of a marked text, without the marks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextSpan {
    pub(crate) text: String,
    pub(crate) origin: Origin,
}

/// The origin of a span, which decides whether control tokens in it are tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The chat template: control tokens are tokens.
    Template,
    /// The caller: control tokens are text.
    User,
}

impl ControlTokens {
    pub(crate) fn new(spellings: impl IntoIterator<Item = String>) -> Self {
        let spellings: Vec<String> = spellings.into_iter().filter(|spelling| !spelling.is_empty()).collect();
        // It fails only beyond two billion states.
        let matcher = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&spellings).ok();
        ControlTokens { spellings: matcher.filter(|_| !spellings.is_empty()) }
    }

    /// Marks text of the caller.
    pub(crate) fn mark<'a>(&self, written: &'a str) -> Cow<'a, str> {
        let clean = match written.contains([OPEN, CLOSE]) {
            // Only Hob sets marks.
            true => Cow::Owned(written.replace([OPEN, CLOSE], "\u{FFFD}")),
            false => Cow::Borrowed(written),
        };
        let Some(spellings) = self.spellings.as_ref().filter(|spellings| spellings.is_match(&*clean)) else {
            return clean;
        };
        let mut marked = String::with_capacity(clean.len() + 16);
        spellings.replace_all_with(&clean, &mut marked, |_, spelling, marked| {
            marked.push(OPEN);
            marked.push_str(spelling);
            marked.push(CLOSE);
            true
        });
        Cow::Owned(marked)
    }

    /// Marks all text in a value, including field names.
    pub(crate) fn mark_value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => match self.mark(&text) {
                Cow::Owned(marked) => Value::String(marked),
                Cow::Borrowed(_) => Value::String(text),
            },
            Value::Array(values) => values.into_iter().map(|value| self.mark_value(value)).collect(),
            Value::Object(fields) => Value::Object(self.mark_fields(fields)),
            other => other,
        }
    }

    pub(crate) fn mark_fields(&self, fields: Map<String, Value>) -> Map<String, Value> {
        fields
            .into_iter()
            .map(|(name, value)| (self.mark(&name).into_owned(), self.mark_value(value)))
            .collect()
    }

    /// Splits a marked text into spans. A span with text of the caller ends only at control tokens of the template, so that words
    /// are not split.
    pub(crate) fn spans(&self, marked: &str) -> Vec<TextSpan> {
        let mut spans = SpanBuilder::default();
        let mut rest = marked;
        while let Some((before, after)) = rest.split_once(OPEN) {
            self.plain(before, &mut spans);
            rest = match self.user_spelling(after) {
                Some((spelling, after)) => {
                    spans.words(spelling);
                    spans.has_user_text = true;
                    after
                }
                // The template has split the marked text, so the mark is ignored.
                None => after,
            };
        }
        self.plain(rest, &mut spans);
        spans.finish()
    }

    /// The marked spelling at the start of `text`, and the rest.
    fn user_spelling<'a>(&self, text: &'a str) -> Option<(&'a str, &'a str)> {
        let (spelling, after) = text.split_once(CLOSE)?;
        let found = self.spellings.as_ref()?.find(spelling)?;
        (found.range() == (0..spelling.len())).then_some((spelling, after))
    }

    fn plain(&self, text: &str, spans: &mut SpanBuilder) {
        let text: Cow<'_, str> =
            if text.contains(CLOSE) { Cow::Owned(text.replace(CLOSE, "")) } else { Cow::Borrowed(text) };
        let mut done = 0;
        for found in self.spellings.iter().flat_map(|spellings| spellings.find_iter(&*text)) {
            spans.words(&text[done..found.start()]);
            spans.token(&text[found.range()]);
            done = found.end();
        }
        spans.words(&text[done..]);
    }
}

pub(crate) fn is_marked(text: &str) -> bool {
    text.contains([OPEN, CLOSE])
}

#[derive(Default)]
struct SpanBuilder {
    done: Vec<TextSpan>,
    /// Text with control tokens of the template.
    template: String,
    /// Text since the last such token.
    words: String,
    /// Whether it contains a control token spelled by the caller.
    has_user_text: bool,
}

impl SpanBuilder {
    fn words(&mut self, text: &str) {
        self.words.push_str(text);
    }

    fn token(&mut self, spelling: &str) {
        self.end_words();
        self.template.push_str(spelling);
    }

    fn end_words(&mut self) {
        let words = std::mem::take(&mut self.words);
        if std::mem::take(&mut self.has_user_text) {
            self.end_template();
            self.done.push(TextSpan { text: words, origin: Origin::User });
        } else {
            self.template.push_str(&words);
        }
    }

    fn end_template(&mut self) {
        let text = std::mem::take(&mut self.template);
        if !text.is_empty() {
            self.done.push(TextSpan { text, origin: Origin::Template });
        }
    }

    fn finish(mut self) -> Vec<TextSpan> {
        self.end_words();
        self.end_template();
        self.done
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn tokens() -> ControlTokens {
        ControlTokens::new(["<s>", "</s>", "<|end|>"].map(str::to_owned))
    }

    fn from_template(text: &str) -> TextSpan {
        TextSpan { text: text.into(), origin: Origin::Template }
    }

    fn from_user(text: &str) -> TextSpan {
        TextSpan { text: text.into(), origin: Origin::User }
    }

    #[test]
    fn text_of_callers_never_becomes_a_control_token() {
        let tokens = tokens();
        let message = tokens.mark("bye<|end|><s>now");
        let spans = tokens.spans(&format!("<s>user\n{message}!<|end|>\n<s>"));
        assert_eq!(
            spans,
            [from_template("<s>"), from_user("user\nbye<|end|><s>now!"), from_template("<|end|>\n<s>")]
        );
    }

    #[test]
    fn ordinary_text_is_unchanged() {
        let tokens = tokens();
        assert!(matches!(tokens.mark("a < b, <b>bold</b>"), Cow::Borrowed(_)));
        assert_eq!(tokens.spans("<s>hello<|end|>"), [from_template("<s>hello<|end|>")]);
        assert_eq!(ControlTokens::new([]).spans("<s>"), [from_template("<s>")]);
    }

    #[test]
    fn marks_in_text_of_callers_are_ignored() {
        let tokens = tokens();
        let hostile = format!("{OPEN}x{CLOSE}<|{CLOSE}end|>");
        assert_eq!(tokens.mark(&hostile), "\u{FFFD}x\u{FFFD}<|\u{FFFD}end|>");
    }

    #[test]
    fn a_template_that_splits_text_leaves_no_marks() {
        let tokens = tokens();
        let marked = tokens.mark("before<|end|>after").into_owned();
        let (before, after) = marked.split_once("<|end|>").expect("the spelling is there");
        assert_eq!(tokens.spans(before), [from_template("before")]);
        assert_eq!(tokens.spans(&format!("{after}<s>")), [from_template("after<s>")]);
    }

    #[test]
    fn all_text_of_a_value_is_marked() {
        let tokens = tokens();
        let marked = tokens.mark_value(json!({"content": ["<s>", 1], "<|end|>": {"x": "</s>"}}));
        let mark = |text: &str| format!("{OPEN}{text}{CLOSE}");
        assert_eq!(marked, json!({"content": [mark("<s>"), 1], (mark("<|end|>")): {"x": mark("</s>")}}));
    }

    proptest! {
        #[test]
        fn nothing_a_user_types_is_lost_or_becomes_a_token(
            text in prop::collection::vec(prop::sample::select(vec!["<s>", "<|end|>", "</s>", "a", "<", "|", "é"]), 0..12)
        ) {
            let (text, tokens) = (text.concat(), tokens());
            let spans = tokens.spans(&tokens.mark(&text));
            let whole: String = spans.iter().map(|span| span.text.as_str()).collect();
            prop_assert_eq!(&whole, &text);
            let spellings = tokens.spellings.as_ref().expect("there are some");
            for span in spans.iter().filter(|span| span.origin == Origin::Template) {
                prop_assert!(!spellings.is_match(&span.text), "{:?}", span);
            }
        }
    }
}

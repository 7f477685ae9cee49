//! Distinguishes control tokens of a model from the same text written by callers.
//!
//! A chat template writes control tokens such as `<|im_end|>` as text, and so can every caller. So text of callers that spells a
//! control token is marked before the template is rendered, and marked text stays text in the tokeniser. So is text that spells a
//! part of one at its beginning or end, because a template may put texts side by side, and a name that a template could complete,
//! such as `<` + `|im_end|` + `>`. Nothing else changes, so templates can still inspect messages. Pure: knows nothing of requests
//! or llama.cpp.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::{Map, Value};

/// The marks around text. Unicode reserves these characters for use inside a program.
const OPEN: char = '\u{FDD0}';
const CLOSE: char = '\u{FDD1}';

/// The longest part of a control token that is looked for, in characters. Those of real models are shorter.
const LONGEST_PART: usize = 256;

/// The most characters that a template adds on one side of a name, such as `</`.
const MOST_AROUND: usize = 4;

#[derive(Debug)]
pub(crate) struct ControlTokens {
    /// `None` if the model has none.
    spellings: Option<AhoCorasick>,
    /// The spellings in order, to find one that begins with a text.
    forward: Vec<String>,
    /// The reversed spellings in order, to find one that ends with a text.
    backward: Vec<String>,
    /// The spellings without signs at both ends.
    names: HashSet<String>,
    /// Characters of the longest part to look for.
    longest: usize,
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
        let mut backward: Vec<String> = spellings.iter().map(|spelling| reversed(spelling)).collect();
        backward.sort_unstable();
        let names = spellings.iter().flat_map(|spelling| names_in(spelling)).collect();
        let longest = spellings.iter().map(|spelling| spelling.chars().count()).max().unwrap_or(0);
        let matcher = matcher.filter(|_| !spellings.is_empty());
        let mut forward = spellings;
        forward.sort_unstable();
        ControlTokens { spellings: matcher, forward, backward, names, longest: longest.min(LONGEST_PART) }
    }

    /// Marks text of the caller.
    pub(crate) fn mark<'a>(&self, written: &'a str) -> Cow<'a, str> {
        let clean = match written.contains([OPEN, CLOSE]) {
            // Only Hob sets marks.
            true => Cow::Owned(written.replace([OPEN, CLOSE], "\u{FFFD}")),
            false => Cow::Borrowed(written),
        };
        let parts = self.parts_to_mark(&clean);
        if parts.is_empty() {
            return clean;
        }
        let mut marked =
            String::with_capacity(clean.len() + parts.len() * (OPEN.len_utf8() + CLOSE.len_utf8()));
        let mut done = 0;
        for part in parts {
            marked.push_str(&clean[done..part.start]);
            marked.push(OPEN);
            marked.push_str(&clean[part.clone()]);
            marked.push(CLOSE);
            done = part.end;
        }
        marked.push_str(&clean[done..]);
        Cow::Owned(marked)
    }

    /// Marks a name, which templates print between signs.
    pub(crate) fn mark_name<'a>(&self, name: &'a str) -> Cow<'a, str> {
        match self.names.contains(name) {
            true => Cow::Owned(format!("{OPEN}{name}{CLOSE}")),
            false => self.mark(name),
        }
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

    /// The same for fields that a format names, so that templates look for them.
    pub(crate) fn mark_fields(&self, fields: Map<String, Value>) -> Map<String, Value> {
        fields.into_iter().map(|(name, value)| self.marked_field(name, value)).collect()
    }

    /// The same for fields that the caller names.
    pub(crate) fn mark_named(&self, fields: Map<String, Value>) -> Map<String, Value> {
        let field =
            |(name, value): (String, Value)| (self.mark_name(&name).into_owned(), self.mark_value(value));
        fields.into_iter().map(field).collect()
    }

    fn marked_field(&self, name: String, value: Value) -> (String, Value) {
        let value = match (name.as_str(), value) {
            ("name", Value::String(text)) => Value::String(self.mark_name(&text).into_owned()),
            // The fields of a schema, and those of them that must be there.
            ("properties", Value::Object(named)) => Value::Object(self.mark_named(named)),
            ("required", Value::Array(names)) => names
                .into_iter()
                .map(|one| match one {
                    Value::String(name) => Value::String(self.mark_name(&name).into_owned()),
                    other => self.mark_value(other),
                })
                .collect(),
            (_, value) => self.mark_value(value),
        };
        // No format has fields with other characters.
        let is_usual =
            name.chars().all(|char| char.is_ascii_alphanumeric() || matches!(char, '_' | '$' | '-'));
        let name = match is_usual {
            true => self.mark(&name).into_owned(),
            false => self.mark_name(&name).into_owned(),
        };
        (name, value)
    }

    /// The spellings in a text of the caller, and the parts of one at its beginning and its end. In order.
    fn parts_to_mark(&self, text: &str) -> Vec<Range<usize>> {
        let Some(spellings) = &self.spellings else { return Vec::new() };
        let whole: Vec<Range<usize>> = spellings.find_iter(text).map(|found| found.range()).collect();
        let first = whole.first().map_or(text.len(), |range| range.start);
        let beginning = self.beginning(&text[..first]);
        let last = whole.last().or(beginning.as_ref()).map_or(0, |range| range.end);
        let end = self.end(&text[last..]).map(|range| last + range.start..last + range.end);
        beginning.into_iter().chain(whole).chain(end).collect()
    }

    /// The longest beginning of a text that ends a control token. Templates often remove blanks, so they do not count.
    fn beginning(&self, text: &str) -> Option<Range<usize>> {
        let words = text.trim_start();
        let start = text.len() - words.len();
        let ends = words.char_indices().take(self.longest).map(|(at, char)| at + char.len_utf8());
        let longest = ends.filter(|end| is_beginning(&self.backward, &reversed(&words[..*end]))).last()?;
        Some(start..start + longest)
    }

    /// The longest end of a text that begins a control token.
    fn end(&self, text: &str) -> Option<Range<usize>> {
        let words = text.trim_end();
        let starts = words.char_indices().rev().take(self.longest).map(|(at, _)| at);
        let longest = starts.filter(|start| is_beginning(&self.forward, &words[*start..])).last()?;
        Some(longest..words.len())
    }

    /// Splits a marked text into spans. A span with text of the caller ends only at control tokens of the template, so that words
    /// are not split.
    pub(crate) fn spans(&self, marked: &str) -> Vec<TextSpan> {
        let mut spans = SpanBuilder::default();
        let mut rest = marked;
        while let Some((before, after)) = rest.split_once(OPEN) {
            self.plain(before, &mut spans);
            rest = match self.user_text(after) {
                Some((text, after)) => {
                    spans.words(text);
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

    /// The marked text at the start of `text`, and the rest.
    fn user_text<'a>(&self, text: &'a str) -> Option<(&'a str, &'a str)> {
        let (marked, after) = text.split_once(CLOSE)?;
        // A mark whose other end the template has removed.
        if marked.contains(OPEN) {
            return None;
        }
        let found = self.spellings.as_ref()?.find(marked);
        let is_whole = found.is_some_and(|found| found.range() == (0..marked.len()));
        let is_part = || {
            is_beginning(&self.forward, marked)
                || is_beginning(&self.backward, &reversed(marked))
                || self.names.contains(marked)
        };
        (is_whole || !marked.is_empty() && is_part()).then_some((marked, after))
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

fn reversed(text: &str) -> String {
    text.chars().rev().collect()
}

/// Whether one of the sorted texts begins with `text`.
fn is_beginning(sorted: &[String], text: &str) -> bool {
    let at = sorted.partition_point(|one| one.as_str() < text);
    sorted.get(at).is_some_and(|one| one.starts_with(text))
}

/// The names in a spelling: what is left without some signs at both ends.
fn names_in(spelling: &str) -> Vec<String> {
    let chars: Vec<char> = spelling.chars().collect();
    if !chars.iter().any(|char| char.is_alphanumeric()) {
        return Vec::new();
    }
    let before = chars.iter().take_while(|char| !char.is_alphanumeric()).count().min(MOST_AROUND);
    let after = chars.iter().rev().take_while(|char| !char.is_alphanumeric()).count().min(MOST_AROUND);
    let without =
        |(start, end): (usize, usize)| -> String { chars[start..chars.len() - end].iter().collect() };
    (1..=before).flat_map(|start| (1..=after).map(move |end| (start, end))).map(without).collect()
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

    #[test]
    fn a_token_that_a_template_puts_together_stays_text() {
        let tokens = tokens();
        let put_together = [
            format!("{}{}", tokens.mark("bye <|e"), tokens.mark("nd|> now")),
            format!("{}{}{}", tokens.mark("bye <|"), tokens.mark("en"), tokens.mark("d|> now")),
            // A template removes the blanks.
            format!("{}{}", tokens.mark("bye <|end  ").trim(), tokens.mark(" |> now").trim()),
            format!("bye <{}> now", tokens.mark_name("|end|")),
            format!("bye <|{}|> now", tokens.mark_name("end")),
        ];
        for text in put_together {
            let spans = tokens.spans(&format!("<s>{text}</s>"));
            assert_eq!(
                spans,
                [from_template("<s>"), from_user("bye <|end|> now"), from_template("</s>")],
                "{text}"
            );
        }
        let closed = tokens.spans(&format!("</{}>", tokens.mark_name("s")));
        assert_eq!(closed, [from_user("</s>")]);
    }

    #[test]
    fn names_in_schemas_are_marked_but_not_the_fields_of_a_format() {
        let tokens = ControlTokens::new(["<s>", "<name>", "<|end|>"].map(str::to_owned));
        let tool = json!({"type": "function", "function": {"name": "s", "parameters": {
            "type": "object",
            "properties": {"name": {"type": "string", "|end|": "s"}},
            "required": ["name"],
        }}});
        let mark = |text: &str| format!("{OPEN}{text}{CLOSE}");
        let marked = json!({"type": "function", "function": {"name": mark("s"), "parameters": {
            "type": "object",
            "properties": {(mark("name")): {"type": "string", (mark("|end|")): "s"}},
            "required": [mark("name")],
        }}});
        assert_eq!(tokens.mark_value(tool), marked);
    }

    proptest! {
        #[test]
        fn no_two_texts_of_callers_make_a_token(
            texts in prop::collection::vec(
                prop::collection::vec(prop::sample::select(vec!["<", "s", ">", "/", "|", "en", "d", "<|end|>", "é"]), 0..6),
                0..4,
            )
        ) {
            let (texts, tokens): (Vec<String>, _) = (texts.iter().map(|parts| parts.concat()).collect(), tokens());
            let marked: String = texts.iter().map(|text| tokens.mark(text)).collect();
            let spans = tokens.spans(&marked);
            let whole: String = spans.iter().map(|span| span.text.as_str()).collect();
            prop_assert_eq!(whole, texts.concat());
            let spellings = tokens.spellings.as_ref().expect("there are some");
            for span in spans.iter().filter(|span| span.origin == Origin::Template) {
                prop_assert!(!spellings.is_match(&span.text), "{:?}", span);
            }
        }

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

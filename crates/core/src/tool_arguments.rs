//! The arguments that a model wrote: as a tool's own type, and as part of a history.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::request_budget::{BODY_VALUES, json_values};
use crate::tool::ToolError;

/// Arguments that every engine accepts in a history.
pub const NONE: &str = "{}";

/// Reads arguments. They match the schema, so only values that no schema can describe are errors.
pub fn read<T: DeserializeOwned>(arguments: Value) -> Result<T, ToolError> {
    serde_json::from_value(arguments)
        .map_err(|error| ToolError::new(format!("the arguments do not fit: {error}")))
}

/// The arguments of a call as engines accept them in a history, mended if necessary; `None` for what is no JSON object, such as the
/// arguments of a call that was cut off. A text with more values than a request may have is not parsed; [`crate::request_budget`] refuses it.
pub fn replayable(text: &str) -> Option<Cow<'_, str>> {
    let mended = mended(text);
    let has_too_many =
        || mended.len() > BODY_VALUES && json_values(mended.as_bytes(), BODY_VALUES) > BODY_VALUES;
    let is_accepted = mended.trim().is_empty()
        || has_too_many()
        || serde_json::from_str::<Map<String, Value>>(&mended).is_ok();
    is_accepted.then_some(mended)
}

/// JSON that some parsers accept and others refuse, in a form for all of them: half of a surrogate pair, which is no character, as
/// U+FFFD, a number that is too large as its text, and a control character within a string as its escape. The rest stays as it was
/// written.
pub fn mended(text: &str) -> Cow<'_, str> {
    let mut mended = String::new();
    let mut copied = 0;
    let mut is_string = false;
    let mut at = 0;
    while let Some(&byte) = text.as_bytes().get(at) {
        let (length, replacement) = match (is_string, byte) {
            (_, b'"') => {
                is_string = !is_string;
                (1, None)
            }
            (true, b'\\') => escape(&text[at..]),
            (true, 0..b' ') => (1, Some(format!("\\u{byte:04x}"))),
            (false, b'-' | b'0'..=b'9') => number(&text[at..]),
            _ => (1, None),
        };
        if let Some(replacement) = replacement {
            mended.push_str(&text[copied..at]);
            mended.push_str(&replacement);
            copied = at + length;
        }
        at += length;
    }
    match copied {
        0 => Cow::Borrowed(text),
        _ => Cow::Owned(mended + &text[copied..]),
    }
}

/// The length of the escape that a text begins with, and what replaces it.
fn escape(text: &str) -> (usize, Option<String>) {
    match code_unit(text) {
        None => (2, None),
        Some(0xd800..=0xdbff) if matches!(text.get(6..).and_then(code_unit), Some(0xdc00..=0xdfff)) => {
            (12, None)
        }
        Some(0xd800..=0xdfff) => (6, Some("\\ufffd".to_owned())),
        Some(_) => (6, None),
    }
}

/// The code unit of an escape such as `\u00e9` at the start of a text.
fn code_unit(text: &str) -> Option<u16> {
    u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()
}

/// The length of the number that a text begins with, and what replaces it.
fn number(text: &str) -> (usize, Option<String>) {
    let is_part = |letter: char| matches!(letter, '0'..='9' | '+' | '-' | '.' | 'e' | 'E');
    let length = text.find(|letter| !is_part(letter)).unwrap_or(text.len());
    let written = &text[..length];
    let is_too_large = written.parse().is_ok_and(f64::is_infinite);
    (length, is_too_large.then(|| format!("\"{written}\"")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_an_object_or_nothing_can_be_replayed() {
        for text in ["{}", " {\"a\":[1]}\n", "", " \n"] {
            assert_eq!(replayable(text), Some(Cow::Borrowed(text)));
        }
        for text in ["{\"a", "[1]", "7", "null", r#""{}""#, "{} {}", r#"{"a":"\ud8"}"#, r#"{"a":1e}"#] {
            assert_eq!(replayable(text), None, "{text}");
        }
        assert!(replayable(&"[".repeat(2 * BODY_VALUES)).is_some(), "the budget refuses it");
    }

    #[test]
    fn what_only_some_parsers_read_is_mended_and_the_rest_stays() {
        for (written, expected) in [
            (r#"{"a":"x \ud83d y","b":"\udE00"}"#, r#"{"a":"x \ufffd y","b":"\ufffd"}"#),
            (r#"{"a":"\ud83d\ud83d\ude00\\ud83d"}"#, r#"{"a":"\ufffd\ud83d\ude00\\ud83d"}"#),
            (r#"{"a": 1e400, "b":[-2E+999,1e308]}"#, r#"{"a": "1e400", "b":["-2E+999",1e308]}"#),
            ("{\"a\":\"one\ntwo\t\u{1}\",\n\"b\":1}", "{\"a\":\"one\\u000atwo\\u0009\\u0001\",\n\"b\":1}"),
        ] {
            assert_eq!(replayable(written), Some(Cow::Owned(expected.to_owned())), "{written}");
        }
        for fine in [
            r#"{"é": "\u00e9 \ud83d\ude00 \\\" 1e400", "b": -0, "c": 1e-400, "d": 123456789012345678901}"#,
            r#"{"a": "\é", "b": "\"#,
            "\\ud83d 1 e400 -",
            "",
        ] {
            assert!(matches!(mended(fine), Cow::Borrowed(_)), "{fine}");
        }
    }

    proptest! {
        #[test]
        fn what_a_parser_reads_stays(text in "[{}\\[\\]:,\"\\\\udDeE0-9+.\n é-]{0,24}") {
            let parses = |text: &str| serde_json::from_str::<Value>(text).is_ok();
            let once = mended(&text);
            prop_assert!(!parses(&text) || once == text);
            prop_assert!(matches!(mended(&once), Cow::Borrowed(_)));
        }
    }
}

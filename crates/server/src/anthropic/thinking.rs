//! Reasoning: how much the caller asks for, whether the answer shows it, and the signatures of its blocks.
//!
//! Clients send the blocks of an answer back with the next question. A block that no provider signed gets a signature of Hob's,
//! so that it is recognized and never sent to a provider as its own. Where the caller does not want to see the reasoning, the
//! signature carries it, so that a model whose template wants its own reasoning back gets it.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::error::{ApiError, ApiResult};
use crate::openai::ignored_fields::IgnoredFields;
use crate::whole_number::WholeNumber;

/// Begins the signatures of Hob.
const MARK: &str = "hob.";

/// Tokens of reasoning up to which an effort counts as low, and as medium.
const LOW_BUDGET: i64 = 2_048;
const MEDIUM_BUDGET: i64 = 8_192;

/// The efforts that the API documents.
const EFFORTS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];

/// Whether the answer has blocks of reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ThinkingDisplay {
    /// None: the caller asked for no reasoning, and its clients expect text first.
    #[default]
    Absent,
    Shown,
    /// Blocks without their text.
    Omitted,
}

/// The field `thinking`.
#[derive(Debug, Deserialize)]
#[serde(expecting = "an object")]
pub(super) struct WireThinking {
    #[serde(rename = "type")]
    kind: String,
    budget_tokens: Option<WholeNumber>,
    display: Option<String>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// What `thinking` and `output_config.effort` ask for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ThinkingWish {
    /// In the words of chat completions; `None` leaves it to the engine.
    pub(super) effort: Option<String>,
    pub(super) display: ThinkingDisplay,
    /// The same in the words of the caller, for engines of Anthropic's API.
    pub(super) fields: Map<String, Value>,
}

impl ThinkingWish {
    pub(super) fn read(
        thinking: Option<WireThinking>,
        effort: Option<String>,
        ignored: &mut IgnoredFields,
    ) -> ApiResult<Self> {
        if let Some(effort) = effort.as_deref().filter(|effort| !EFFORTS.contains(effort)) {
            let known = EFFORTS.join(", ");
            let message = format!("output_config.effort: '{effort}' is not an effort. Efforts are {known}");
            return Err(ApiError::invalid("output_config.effort", message));
        }
        let mut fields = Map::new();
        if let Some(effort) = &effort {
            fields.insert("output_config".to_owned(), json!({ "effort": effort }));
        }
        let Some(WireThinking { kind, budget_tokens, display, rest }) = thinking else {
            return Ok(ThinkingWish { effort, display: ThinkingDisplay::Absent, fields });
        };
        let mut own = Map::from_iter([("type".to_owned(), json!(kind))]);
        own.extend(budget_tokens.map(|WholeNumber(budget)| ("budget_tokens".to_owned(), json!(budget))));
        own.extend(display.as_ref().map(|display| ("display".to_owned(), json!(display))));
        fields.insert("thinking".to_owned(), Value::Object(own));
        ignored.note_all("thinking", &rest);
        let display = match display.as_deref() {
            Some("omitted") => ThinkingDisplay::Omitted,
            _ => ThinkingDisplay::Shown,
        };
        match kind.as_str() {
            "adaptive" => Ok(ThinkingWish { effort, display, fields }),
            "enabled" => {
                let Some(WholeNumber(budget)) = budget_tokens else {
                    let message = "thinking.budget_tokens: 'enabled' needs it";
                    return Err(ApiError::invalid("thinking.budget_tokens", message));
                };
                let effort = effort.or_else(|| Some(effort_of(budget).to_owned()));
                Ok(ThinkingWish { effort, display, fields })
            }
            "disabled" => {
                let effort = Some("none".to_owned());
                Ok(ThinkingWish { effort, display: ThinkingDisplay::Absent, fields })
            }
            other => {
                let message =
                    format!("thinking.type: '{other}' is unknown. It is 'enabled', 'adaptive' or 'disabled'");
                Err(ApiError::invalid("thinking.type", message))
            }
        }
    }
}

/// Engines know levels, not tokens.
fn effort_of(budget: i64) -> &'static str {
    if budget <= LOW_BUDGET {
        "low"
    } else if budget <= MEDIUM_BUDGET {
        "medium"
    } else {
        "high"
    }
}

/// The signature of reasoning that no provider signed.
pub(super) fn signature(hidden: &str) -> String {
    format!("{MARK}{}", BASE64_STANDARD_NO_PAD.encode(hidden))
}

/// Whether a provider signed it.
pub(super) fn is_foreign(signature: &str) -> bool {
    !signature.is_empty() && !signature.starts_with(MARK)
}

/// The reasoning of a block that is sent back: its text, or what Hob's signature carries.
pub(super) fn recalled(thinking: String, signature: Option<&str>) -> String {
    if !thinking.is_empty() {
        return thinking;
    }
    let carried = signature.and_then(|signature| signature.strip_prefix(MARK));
    let bytes = carried.and_then(|carried| BASE64_STANDARD_NO_PAD.decode(carried).ok());
    bytes.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(thinking: Value, effort: Option<&str>) -> Result<(Option<String>, ThinkingDisplay), String> {
        let thinking = serde_json::from_value(thinking).unwrap();
        ThinkingWish::read(thinking, effort.map(str::to_owned), &mut IgnoredFields::default())
            .map(|wish| (wish.effort, wish.display))
            .map_err(|error| error.message().to_owned())
    }

    #[test]
    fn reasoning_is_asked_for_in_the_words_of_engines() {
        use ThinkingDisplay::{Absent, Omitted, Shown};
        for (thinking, effort, expected) in [
            (json!(null), None, (None, Absent)),
            (json!(null), Some("max"), (Some("max"), Absent)),
            (json!({ "type": "adaptive" }), None, (None, Shown)),
            (json!({ "type": "adaptive", "display": "omitted" }), Some("high"), (Some("high"), Omitted)),
            (json!({ "type": "adaptive", "display": "updates" }), None, (None, Shown)),
            (json!({ "type": "enabled", "budget_tokens": 1024 }), None, (Some("low"), Shown)),
            (json!({ "type": "enabled", "budget_tokens": 8192 }), None, (Some("medium"), Shown)),
            (json!({ "type": "enabled", "budget_tokens": 31999 }), None, (Some("high"), Shown)),
            (json!({ "type": "enabled", "budget_tokens": 31999 }), Some("low"), (Some("low"), Shown)),
            (json!({ "type": "disabled" }), Some("high"), (Some("none"), Absent)),
        ] {
            let (effort_expected, display) = expected;
            assert_eq!(wish(thinking, effort), Ok((effort_expected.map(str::to_owned), display)));
        }
    }

    #[test]
    fn what_is_no_way_to_think_is_refused() {
        assert!(wish(json!({ "type": "enabled" }), None).unwrap_err().starts_with("thinking.budget_tokens"));
        assert!(wish(json!({ "type": "loud" }), None).unwrap_err().starts_with("thinking.type"));
        assert!(wish(json!(null), Some("extreme")).unwrap_err().starts_with("output_config.effort"));
    }

    #[test]
    fn hidden_reasoning_comes_back_with_its_signature() {
        let signature = signature("first é, then 4");
        assert_eq!(recalled(String::new(), Some(&signature)), "first é, then 4");
        assert_eq!(recalled("shown".into(), Some("hob.")), "shown");
        for foreign in [None, Some(""), Some("EqQBCg"), Some("hob.!"), Some("hob.gICA")] {
            assert_eq!(recalled(String::new(), foreign), "");
        }
    }
}

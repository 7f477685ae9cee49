//! Fields of a caller's request that Hob gives no meaning to, at an engine whose API has no place for them: which of them are left
//! out, and which the engine must refuse. Engines of the chat-completions format get every field as it is and need none of this.

use serde_json::Value;

use crate::generate::{AnswerWarning, GenerateRequest, is_annotation, is_documented_field};
use crate::reasoning::is_reasoning_field;

/// Fields that some engine documents beyond the chat-completions API. They change the answer, so an engine without them must not
/// pass over them.
const ENGINE_FIELDS: [&str; 57] = [
    "add_generation_prompt",
    "bad_words",
    "best_of",
    "cachedContent",
    "chat_template",
    "chat_template_kwargs",
    "container",
    "continue_final_message",
    "documents",
    "dry_multiplier",
    "ebnf",
    "echo",
    "enable_thinking",
    "generationConfig",
    "grammar",
    "guided_choice",
    "guided_grammar",
    "guided_json",
    "guided_regex",
    "ignore_eos",
    "json_schema",
    "keep_alive",
    "length_penalty",
    "lora",
    "lora_path",
    "min_p",
    "min_tokens",
    "mirostat",
    "mirostat_eta",
    "mirostat_tau",
    "n_predict",
    "num_ctx",
    "num_predict",
    "options",
    "output_config",
    "prompt_logprobs",
    "reasoning",
    "regex",
    "repeat_last_n",
    "repeat_penalty",
    "repetition_penalty",
    "safetySettings",
    "samplers",
    "skip_special_tokens",
    "stop_token_ids",
    "structural_tag",
    "structured_outputs",
    "suffix",
    "think",
    "thinking",
    "thinking_budget_tokens",
    "top_a",
    "top_k",
    "truncate_prompt_tokens",
    "typical_p",
    "use_beam_search",
    "xtc_probability",
];

/// How to handle a field that an engine's API does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unplaced {
    /// It does not affect the answer, so it is ignored without a warning.
    LeftOut,
    /// It is ignored with a warning.
    Ignored,
    /// The engine cannot do it, so the request is refused.
    Unsupported,
}

/// How to handle the request's field `name`.
pub fn unplaced_field(name: &str, value: &Value) -> Unplaced {
    match name {
        _ if value.is_null() => Unplaced::LeftOut,
        // Answers are not stored here, so a request to store one gets a warning.
        "store" if *value != Value::Bool(false) => Unplaced::Ignored,
        _ if is_annotation(name) => Unplaced::LeftOut,
        "logit_bias" if says_nothing(value) => Unplaced::Ignored,
        "modalities" if is_text_alone(value) => Unplaced::Ignored,
        // How an answer is worded, and a guess at it that only makes it come sooner.
        "verbosity" | "prediction" => Unplaced::Ignored,
        _ if is_documented_field(name) || ENGINE_FIELDS.contains(&name) => Unplaced::Unsupported,
        _ => Unplaced::Ignored,
    }
}

/// How to handle the field `name` of a message. Clients send an answer back unchanged, with fields that only describe it.
pub fn unplaced_message_field(name: &str, value: &Value) -> Unplaced {
    match name {
        _ if says_nothing(value) => Unplaced::LeftOut,
        _ if is_reasoning_field(name) => Unplaced::LeftOut,
        // These contain output of the model.
        "audio" | "function_call" => Unplaced::Unsupported,
        _ => Unplaced::Ignored,
    }
}

/// The warnings of a request at an engine whose own fields are `own`. The error is the field that the engine cannot do.
pub fn ignored_fields(request: &GenerateRequest, own: &[&str]) -> Result<Vec<AnswerWarning>, String> {
    let mut ignored: Vec<String> = Vec::new();
    for (name, value) in request.extra.iter().filter(|(name, _)| !own.contains(&name.as_str())) {
        match unplaced_field(name, value) {
            Unplaced::LeftOut => {}
            Unplaced::Ignored => ignored.push(name.clone()),
            Unplaced::Unsupported => return Err(name.clone()),
        }
    }
    for (index, message) in request.messages.iter().enumerate() {
        for (name, value) in &message.extra {
            match unplaced_message_field(name, value) {
                Unplaced::LeftOut => {}
                Unplaced::Ignored => ignored.push(format!("messages[].{name}")),
                Unplaced::Unsupported => return Err(format!("messages[{index}].{name}")),
            }
        }
    }
    // A long conversation has the same fields in every message.
    ignored.sort_unstable();
    ignored.dedup();
    Ok(ignored.into_iter().map(AnswerWarning::Ignored).collect())
}

/// Values that mean that the client sets nothing.
fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

fn is_text_alone(value: &Value) -> bool {
    value.as_array().is_some_and(|kinds| kinds.iter().all(|kind| kind == "text"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;
    use crate::message::{Message, Role};

    fn fields(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    fn ignored(request: Value, message: Value) -> Result<Vec<String>, String> {
        let messages = vec![Message { extra: fields(message), ..Message::new(Role::Assistant, "4") }; 2];
        let request = GenerateRequest { messages, extra: fields(request), ..GenerateRequest::default() };
        let warnings = ignored_fields(&request, &["own"])?;
        Ok(warnings.iter().map(|warning| warning.text().into_owned()).collect())
    }

    #[test]
    fn a_field_that_no_api_documents_is_ignored_by_name() {
        assert_eq!(
            ignored(json!({ "future_field": 1, "own": 2 }), json!({})),
            Ok(vec!["ignored=future_field".into()])
        );
    }

    #[test]
    fn what_asks_for_nothing_that_matters_is_ignored() {
        let harmless = json!({
            "logit_bias": {}, "modalities": ["text"], "verbosity": "low", "prediction": { "type": "content" }, "store": true,
            "user": "ann", "metadata": { "a": "b" }, "service_tier": "auto", "audio": null,
        });
        assert_eq!(
            ignored(harmless, json!({})),
            Ok(["logit_bias", "modalities", "prediction", "store", "verbosity"]
                .map(|field| format!("ignored={field}"))
                .to_vec())
        );
        assert_eq!(ignored(json!({ "store": false }), json!({})), Ok(Vec::new()));
    }

    #[test]
    fn what_an_engine_would_have_to_do_is_named() {
        for (request, field) in [
            (json!({ "logit_bias": { "7": 1 } }), "logit_bias"),
            (json!({ "modalities": ["text", "audio"] }), "modalities"),
            (json!({ "audio": { "voice": "x" } }), "audio"),
            (json!({ "reasoning_effort": "high" }), "reasoning_effort"),
            (json!({ "min_p": 0.1 }), "min_p"),
            (json!({ "guided_json": {} }), "guided_json"),
        ] {
            assert_eq!(ignored(request, json!({})), Err(field.to_owned()));
        }
        assert_eq!(ignored(json!({}), json!({ "audio": { "id": "a" } })), Err("messages[0].audio".into()));
    }

    #[test]
    fn what_comes_back_with_an_answer_is_told_once() {
        let message = json!({
            "refusal": "no", "id": "msg_1", "cache_control": { "type": "ephemeral" }, "annotations": [{ "type": "url" }],
            "reasoning_content": "hm", "audio": null, "parsed": {},
        });
        assert_eq!(
            ignored(json!({}), message),
            Ok(["annotations", "cache_control", "id", "refusal"]
                .map(|field| format!("ignored=messages[].{field}"))
                .to_vec())
        );
        let nothing = json!({ "refusal": null, "annotations": [] });
        assert_eq!(ignored(json!({}), nothing), Ok(Vec::new()));
    }
}

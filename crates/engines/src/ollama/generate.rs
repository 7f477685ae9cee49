//! The body of `POST /api/generate`, which completes a text, or fills the gap before a suffix.

use std::borrow::Cow;

use hob_core::{
    AnswerWarning, CompletionRequest, GenerateRequest, ReplyMode, ResponseFormat, ignored_fields,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::options::{FullContext, OWN_OPTIONS, options};
use crate::multiple_choices::MAX_ANSWERS;
use crate::wire::unsupported_field::UnsupportedField;

/// Additional fields that this request of Ollama has. `options` is merged with Hob's options.
const OWN_FIELDS: [&str; 4] = ["keep_alive", "options", "shift", "truncate"];

#[derive(Debug, Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    prompt: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    suffix: Option<&'a str>,
    /// Without the model's template. A suffix needs the template, which has a place for it and writes no conversation.
    raw: bool,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Cow<'a, Value>>,
    options: Map<String, Value>,
    #[serde(flatten)]
    full_context: FullContext<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keep_alive: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_logprobs: Option<u32>,
}

/// Fails for a field that Ollama would have to honour and cannot. The warnings name fields without effect.
pub(super) fn check(
    request: &CompletionRequest,
    settings: &GenerateRequest,
) -> Result<Vec<AnswerWarning>, UnsupportedField> {
    if request.echo {
        return Err(UnsupportedField::because("echo", "Ollama returns no probabilities of the prompt"));
    }
    if request.answers() > MAX_ANSWERS {
        return Err(UnsupportedField::because("n", format!("at most {MAX_ANSWERS} answers are possible")));
    }
    let own: Vec<&str> = OWN_FIELDS.into_iter().chain(OWN_OPTIONS).collect();
    ignored_fields(settings, &own).map_err(UnsupportedField::new)
}

impl<'a> Body<'a> {
    /// The body for the answer with the index `answer`.
    pub(super) fn of(
        request: &'a CompletionRequest,
        settings: &'a GenerateRequest,
        reply_mode: ReplyMode,
        answer: u32,
    ) -> Result<Self, UnsupportedField> {
        let Some(prompt) = request.prompt.text() else {
            return Err(UnsupportedField::because("prompt", "Ollama accepts text, not tokens"));
        };
        let sampling = &request.sampling;
        Ok(Body {
            model: &request.model,
            prompt,
            suffix: request.suffix.as_deref(),
            raw: request.suffix.is_none(),
            stream: reply_mode == ReplyMode::Streamed,
            format: match &request.response_format {
                ResponseFormat::Text => None,
                ResponseFormat::JsonObject => Some(Cow::Owned(json!("json"))),
                ResponseFormat::JsonSchema(schema) => Some(Cow::Borrowed(&schema.schema)),
            },
            options: options(settings, answer)?,
            full_context: FullContext::of(&request.extra),
            keep_alive: request.extra.get("keep_alive").filter(|value| !value.is_null()),
            logprobs: sampling.logprobs.then_some(true),
            top_logprobs: sampling.top_logprobs.filter(|_| sampling.logprobs),
        })
    }
}

#[cfg(test)]
mod tests {
    use hob_core::{MaxTokens, Prompt, Temperature};

    use super::*;

    fn written(request: &CompletionRequest) -> Value {
        let settings = request.settings();
        serde_json::to_value(Body::of(request, &settings, ReplyMode::Complete, 0).unwrap()).unwrap()
    }

    fn request() -> CompletionRequest {
        CompletionRequest {
            model: "m".into(),
            prompt: "Once".into(),
            temperature: Some(Temperature::new(0.0).unwrap()),
            max_tokens: Some(MaxTokens::new(4).unwrap()),
            ..CompletionRequest::default()
        }
    }

    #[test]
    fn a_text_is_continued_without_the_template_and_a_gap_is_filled_with_it() {
        let options = json!({ "temperature": 0.0, "num_predict": 4 });
        assert_eq!(
            written(&request()),
            json!({
                "model": "m", "prompt": "Once", "raw": true, "stream": false, "options": options,
                "truncate": false, "shift": false,
            })
        );
        assert_eq!(
            written(&CompletionRequest { suffix: Some("end".into()), ..request() }),
            json!({
                "model": "m", "prompt": "Once", "suffix": "end", "raw": false, "stream": false, "options": options,
                "truncate": false, "shift": false,
            })
        );
    }

    #[test]
    fn a_text_is_only_cut_for_a_caller_who_wants_it() {
        let Value::Object(extra) = json!({ "truncate": true, "shift": null }) else { panic!("an object") };
        let request = CompletionRequest { extra, ..request() };
        assert!(check(&request, &request.settings()).is_ok_and(|ignored| ignored.is_empty()));
        let body = written(&request);
        assert_eq!((&body["truncate"], &body["shift"]), (&json!(true), &json!(false)));
    }

    #[test]
    fn tokens_are_refused_by_name() {
        let request = CompletionRequest { prompt: Prompt::Tokens(vec![1]), ..request() };
        let refused = Body::of(&request, &request.settings(), ReplyMode::Complete, 0).unwrap_err();
        assert_eq!(refused.field, "prompt");
    }
}

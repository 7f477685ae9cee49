//! `POST /v1/completions`: a text that is continued as it stands. The answer has the form of a chat answer with `text` in
//! the place of the message, and is read by the same code.

use hob_core::{CompletionRequest, EngineError, Prompt, ReplyMode, ResponseFormat};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::json;

use super::request::{entry, schema_format};
use super::style::ServerKind;
use crate::wire::client::Endpoint;
use crate::wire::error_response::unknown_model;
use crate::wire::response::Response;

/// How to write one request.
#[derive(Debug, Clone, Copy)]
pub(super) struct CompletionBodyOptions {
    pub(super) reply_mode: ReplyMode,
    pub(super) server: ServerKind,
}

/// Sends the request, with `prompt` in the place of its own, and checks the status of the response.
pub(super) async fn post(
    endpoint: &Endpoint,
    request: &CompletionRequest,
    prompt: &Prompt,
    options: CompletionBodyOptions,
) -> Result<Response, EngineError> {
    if request.echo && options.server == ServerKind::LlamaCpp {
        return Err(endpoint.unsupported("echo", Some("llama.cpp returns no probabilities of the prompt")));
    }
    let json = serde_json::to_vec(&Body { request, prompt, options })
        .map_err(|error| endpoint.malformed(error.to_string()))?;
    let response = endpoint.post("/v1/completions", json).await?;
    endpoint.accept(response).await.map_err(|error| unknown_model(error, &request.model))
}

struct Body<'a> {
    request: &'a CompletionRequest,
    prompt: &'a Prompt,
    options: CompletionBodyOptions,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Body { request, prompt, options } = self;
        let sampling = &request.sampling;
        let streamed = options.reply_mode == ReplyMode::Streamed;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("model", &request.model)?;
        match prompt {
            Prompt::Text(text) => map.serialize_entry("prompt", text)?,
            Prompt::Tokens(tokens) => map.serialize_entry("prompt", tokens)?,
        }
        // The other servers get the suffix inside the prompt, or at a path of its own.
        if options.server == ServerKind::Generic {
            entry(&mut map, "suffix", request.suffix.as_ref())?;
        }
        entry(&mut map, "echo", request.echo.then_some(&true))?;
        entry(&mut map, "temperature", request.temperature().as_ref())?;
        entry(&mut map, "max_tokens", request.max_tokens().as_ref())?;
        map.serialize_entry("stream", &streamed)?;
        if streamed {
            map.serialize_entry("stream_options", &json!({ "include_usage": true }))?;
        }
        entry(&mut map, "top_p", sampling.top_p.as_ref())?;
        entry(&mut map, "stop", (!sampling.stop.is_empty()).then_some(&sampling.stop))?;
        entry(&mut map, "seed", sampling.seed.as_ref())?;
        entry(&mut map, "presence_penalty", sampling.presence_penalty.as_ref())?;
        entry(&mut map, "frequency_penalty", sampling.frequency_penalty.as_ref())?;
        entry(&mut map, "n", sampling.n.as_ref())?;
        if sampling.logprobs {
            let alternatives = sampling.top_logprobs.unwrap_or(0);
            match options.server {
                // Zero means none at all to llama.cpp.
                ServerKind::LlamaCpp => map.serialize_entry("n_probs", &alternatives.max(1))?,
                _ => map.serialize_entry("logprobs", &alternatives)?,
            }
        }
        match (&request.response_format, options.server) {
            (ResponseFormat::Text, _) => {}
            // llama.cpp has `response_format` in conversations only.
            (ResponseFormat::JsonObject, ServerKind::LlamaCpp) => {
                map.serialize_entry("json_schema", &json!({ "type": "object" }))?
            }
            (ResponseFormat::JsonSchema(schema), ServerKind::LlamaCpp) => {
                map.serialize_entry("json_schema", &schema.schema)?
            }
            (ResponseFormat::JsonObject, _) => {
                map.serialize_entry("response_format", &json!({ "type": "json_object" }))?
            }
            (ResponseFormat::JsonSchema(schema), _) => {
                map.serialize_entry("response_format", &schema_format(schema))?
            }
        }
        for (name, value) in &request.extra {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use hob_core::{Sampling, Temperature};
    use serde_json::Value;

    use super::*;

    fn written(request: &CompletionRequest, server: ServerKind) -> Value {
        let options = CompletionBodyOptions { reply_mode: ReplyMode::Complete, server };
        serde_json::to_value(Body { request, prompt: &request.prompt, options }).unwrap()
    }

    fn request() -> CompletionRequest {
        CompletionRequest {
            model: "m".into(),
            prompt: "Once".into(),
            temperature: Some(Temperature::new(0.0).unwrap()),
            sampling: Sampling { logprobs: true, ..Sampling::default() },
            ..CompletionRequest::default()
        }
    }

    #[test]
    fn probabilities_are_asked_for_as_each_server_knows_them() {
        let common = json!({
            "model": "m", "prompt": "Once", "temperature": 0.0, "max_tokens": 1024, "stream": false,
        });
        for (server, field, value) in
            [(ServerKind::LlamaCpp, "n_probs", 1), (ServerKind::Vllm, "logprobs", 0)]
        {
            let mut expected = common.clone();
            expected[field] = json!(value);
            assert_eq!(written(&request(), server), expected);
        }
    }

    #[test]
    fn a_prompt_is_scored_without_a_word_after_it() {
        let request = CompletionRequest { echo: true, prompt_only: true, ..request() };
        assert_eq!(
            written(&request, ServerKind::Vllm),
            json!({
                "model": "m", "prompt": "Once", "echo": true, "temperature": 0.0, "max_tokens": 0, "stream": false,
                "logprobs": 0,
            })
        );
    }

    #[test]
    fn tokens_and_a_suffix_are_sent_as_they_are_to_a_server_that_takes_them() {
        let request = CompletionRequest {
            prompt: Prompt::Tokens(vec![5, 6]),
            suffix: Some("}".into()),
            sampling: Sampling::default(),
            ..request()
        };
        let body = written(&request, ServerKind::Generic);
        assert_eq!((&body["prompt"], &body["suffix"]), (&json!([5, 6]), &json!("}")));
    }
}

//! Requests that are accepted, and what they mean.

#[path = "chat_request_refusal_tests.rs"]
mod refusals;
#[path = "chat_request_tool_tests.rs"]
mod tools;

use axum::response::IntoResponse;
use hob_core::{Content, ContentPart, JsonSchema, Message, Role};
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn parse(body: &str) -> ChatRequest {
    ChatRequest::parse(body.as_bytes()).unwrap_or_else(|error| panic!("{body}: {error:?}"))
}

/// A small good request with `fields` added to it.
fn with(fields: &str) -> String {
    format!(r#"{{"model":"m","messages":[{{"role":"user","content":"hi"}}],{fields}}}"#)
}

/// A request with these messages.
fn saying(messages: &str) -> String {
    format!(r#"{{"model":"m","messages":[{messages}]}}"#)
}

/// What [`with`] asks for before anything is added.
fn plain() -> ChatRequest {
    ChatRequest {
        request: GenerateRequest {
            model: "m".into(),
            messages: vec![Message::new(Role::User, "hi")],
            ..GenerateRequest::default()
        },
        mode: ResponseMode::Whole,
        agent: AgentPreference::Configured,
        calls: CallForm::Tools,
        documents: None,
        steps: false,
        agent_tools: None,
        warnings: Vec::new(),
    }
}

#[test]
fn documents_and_steps_are_hobs_own_fields_and_no_engine_gets_them() {
    let wanting = |documents: Option<&[&str]>, steps| {
        let documents = documents.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        ChatRequest { documents, steps, ..plain() }
    };
    for (fields, expected) in [
        (r#""documents":true"#, wanting(Some(&[]), false)),
        (r#""documents":["team","home"],"steps":true"#, wanting(Some(&["team", "home"]), true)),
        (r#""documents":false,"steps":false"#, wanting(None, false)),
        (r#""documents":null,"steps":null"#, wanting(None, false)),
    ] {
        assert_eq!(parse(&with(fields)), expected, "{fields}");
    }
    let (param, message) = refusal(with(r#""documents":"all""#).as_bytes());
    assert_eq!(param.as_deref(), Some("documents"));
    assert!(message.contains("true, false or an array of collections"), "{message}");
}

fn plain_with(change: impl FnOnce(&mut GenerateRequest)) -> ChatRequest {
    let mut expected = plain();
    change(&mut expected.request);
    expected
}

/// The field and the words of a refusal, which is always a 400.
fn refusal(body: &[u8]) -> (Option<String>, String) {
    let error = ChatRequest::parse(body).expect_err(&String::from_utf8_lossy(body));
    let event: Value = serde_json::from_slice(&error.event(crate::error::ErrorFormat::OpenAi)).unwrap();
    assert_eq!(error.into_response().status(), 400);
    let text = |field: &str| event["error"][field].as_str().map(str::to_owned);
    (text("param"), text("message").unwrap())
}

#[test]
fn the_smallest_request_leaves_everything_to_the_defaults() {
    assert_eq!(parse(&saying(r#"{"role":"user","content":"hi"}"#)), plain());
}

#[test]
fn null_means_absent_in_every_field() {
    let nulls = [
        "temperature",
        "max_tokens",
        "max_completion_tokens",
        "stream",
        "stream_options",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "response_format",
        "stop",
        "seed",
        "top_p",
        "n",
        "presence_penalty",
        "frequency_penalty",
        "logprobs",
        "top_logprobs",
        "user",
    ];
    let fields: Vec<String> = nulls.iter().map(|field| format!(r#""{field}":null"#)).collect();
    assert_eq!(parse(&with(&fields.join(","))), plain());

    let message =
        r#"{"role":"user","content":"hi","name":null,"tool_calls":null,"tool_call_id":null,"refusal":null}"#;
    assert_eq!(parse(&saying(message)), plain());
}

#[test]
fn every_parameter_reaches_the_request() {
    let body = with(
        r#""temperature":0.2,"max_tokens":7,"top_p":0.9,"seed":-4,"n":2,"presence_penalty":-2,
           "frequency_penalty":1.5,"logprobs":true,"top_logprobs":3,"parallel_tool_calls":false"#,
    );
    let expected = plain_with(|request| {
        request.temperature = Some(Temperature::new(0.2).unwrap());
        request.max_tokens = Some(MaxTokens::new(7).unwrap());
        request.parallel_tool_calls = Some(false);
        request.sampling = Sampling {
            top_p: Some(0.9),
            stop: Vec::new(),
            seed: Some(-4),
            presence_penalty: Some(-2.0),
            frequency_penalty: Some(1.5),
            n: NonZeroU32::new(2),
            logprobs: true,
            top_logprobs: Some(3),
        };
    });
    assert_eq!(parse(&body), expected);
}

#[test]
fn the_newer_name_of_max_tokens_wins_and_another_value_of_the_older_one_is_named() {
    let expected = || plain_with(|request| request.max_tokens = Some(MaxTokens::new(9).unwrap()));
    for fields in [r#""max_completion_tokens":9"#, r#""max_completion_tokens":9,"max_tokens":9"#] {
        assert_eq!(parse(&with(fields)), expected(), "{fields}");
    }
    let warnings = vec![AnswerWarning::Ignored("max_tokens".to_owned())];
    let both = r#""max_completion_tokens":9,"max_tokens":5"#;
    assert_eq!(parse(&with(both)), ChatRequest { warnings, ..expected() });
}

#[test]
fn whole_numbers_are_temperatures_too() {
    for (written, meant) in [("0", 0.0), ("2", 2.0), ("1e0", 1.0)] {
        let expected = plain_with(|request| request.temperature = Some(Temperature::new(meant).unwrap()));
        assert_eq!(parse(&with(&format!(r#""temperature":{written}"#))), expected);
    }
}

#[test]
fn a_whole_number_may_be_written_as_a_fraction() {
    let expected = plain_with(|request| {
        request.max_tokens = Some(MaxTokens::new(20).unwrap());
        request.sampling.n = NonZeroU32::new(1);
        request.sampling.seed = Some(-7);
        request.sampling.top_logprobs = Some(3);
    });
    assert_eq!(parse(&with(r#""max_tokens":20.0,"n":1.0,"seed":-7.0,"top_logprobs":3.0"#)), expected);
}

#[test]
fn a_field_that_says_what_holds_anyway_reaches_no_engine() {
    assert_eq!(parse(&with(r#""logit_bias":{},"modalities":["text"]"#)), plain());
    let with_effect = parse(&with(r#""logit_bias":{"5":1},"modalities":["text","audio"]"#)).request.extra;
    assert_eq!(
        Value::Object(with_effect),
        json!({ "logit_bias": { "5": 1 }, "modalities": ["text", "audio"] })
    );
}

#[test]
fn what_no_engine_will_see_is_named() {
    let body = r#"{"model":"m","messages":[
            {"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}},
                {"type":"text","text":"there","cache_control":null},
                {"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA","format":"png"}}]},
            {"role":"assistant","tool_calls":[
                {"id":"a","type":"function","index":0,"extra_content":{},"function":{"name":"f"}},
                {"id":"b","type":"function","index":1,"extra_content":{},"function":{"name":"f"}}]}],
        "stream_options":{"include_usage":true,"include_obfuscation":false},
        "tools":[{"function":{"name":"f","deferred":true},"cache_control":{}}],
        "response_format":{"type":"json_schema","json_schema":{"schema":{},"title":"x"},"schema":{}}}"#;
    let named: Vec<String> = parse(body).warnings.iter().map(|warning| warning.text().into_owned()).collect();
    assert_eq!(
        named,
        [
            "ignored=messages[].content[].cache_control",
            "ignored=messages[].content[].image_url.format",
            "ignored=messages[].tool_calls[].extra_content",
            "ignored=tools[].cache_control",
            "ignored=tools[].function.deferred",
            "ignored=response_format.schema",
            "ignored=response_format.json_schema.title",
            "ignored=stream_options.include_obfuscation",
        ]
    );
    let many: Vec<String> = (0..1_000).map(|at| format!(r#""f{at}":1"#)).collect();
    let many = parse(&with(&format!(r#""stream_options":{{{}}}"#, many.join(","))));
    assert_eq!(many.warnings.len(), 17, "16 names, and the number of the others");
}

#[test]
fn content_that_only_some_engines_take_is_passed_on_as_it_came() {
    let parts = json!([
        { "type": "input_audio", "input_audio": { "data": "AAAA", "format": "wav" } },
        { "type": "file", "file": { "file_id": "f" }, "cache_control": { "type": "ephemeral" } },
        { "type": "video_url", "video_url": { "url": "data:video/mp4;base64,AAAA" } },
        { "type": "text", "text": "What is this?" },
    ]);
    let chat = parse(&saying(&format!(r#"{{"role":"user","content":{parts}}}"#)));
    let mut expected: Vec<ContentPart> =
        parts.as_array().unwrap()[..3].iter().cloned().map(ContentPart::Other).collect();
    expected.push(ContentPart::Text("What is this?".into()));
    assert_eq!(chat, plain_with(|request| request.messages[0].content = Content::Parts(expected)));
}

#[test]
fn stop_is_one_word_or_several() {
    let stopping = |words: &[&str]| {
        plain_with(|request| request.sampling.stop = words.iter().map(|word| (*word).to_owned()).collect())
    };
    assert_eq!(parse(&with(r#""stop":"END""#)), stopping(&["END"]));
    assert_eq!(parse(&with(r#""stop":["a","b"]"#)), stopping(&["a", "b"]));
    assert_eq!(parse(&with(r#""stop":[]"#)), stopping(&[]));
}

#[test]
fn a_stream_is_asked_for_with_or_without_its_usage() {
    for (fields, include_usage) in [
        (r#""stream":true"#, false),
        (r#""stream":true,"stream_options":{}"#, false),
        (r#""stream":true,"stream_options":{"include_usage":null,"include_obfuscation":false}"#, false),
        (r#""stream":true,"stream_options":{"include_usage":true}"#, true),
    ] {
        assert_eq!(parse(&with(fields)).mode, ResponseMode::Streamed { include_usage }, "{fields}");
    }
    let whole = parse(&with(r#""stream":false,"stream_options":{"include_usage":true}"#));
    assert_eq!(whole, plain());
}

#[test]
fn fields_we_give_no_meaning_to_are_kept_for_the_engine() {
    let body = r#"{"model":"m","top_k":40,"messages":[{"role":"user","content":"hi","cache":{"ttl":5}}],
                   "chat_template_kwargs":{"enable_thinking":false}}"#;
    let mut expected = plain_with(|request| {
        request.extra = json!({ "top_k": 40, "chat_template_kwargs": { "enable_thinking": false } })
            .as_object()
            .unwrap()
            .clone();
    });
    expected.request.messages[0].extra.insert("cache".into(), json!({ "ttl": 5 }));
    assert_eq!(parse(body), expected);
}

#[test]
fn the_form_of_the_answer_is_read_in_every_form() {
    let schema = |name: &str, description: Option<&str>, strict| {
        ResponseFormat::JsonSchema(JsonSchema {
            name: name.into(),
            description: description.map(str::to_owned),
            schema: json!({ "type": "array" }),
            strict,
        })
    };
    for (written, meant) in [
        (r#"{"type":"text"}"#, ResponseFormat::Text),
        (r#"{"type":"json_object"}"#, ResponseFormat::JsonObject),
        (
            r#"{"type":"json_schema","json_schema":{"name":"l","description":"d","strict":true,"schema":{"type":"array"}}}"#,
            schema("l", Some("d"), Some(true)),
        ),
        (r#"{"type":"json_schema","json_schema":{"schema":{"type":"array"}}}"#, schema("answer", None, None)),
    ] {
        let expected = plain_with(|request| request.response_format = meant);
        assert_eq!(parse(&with(&format!(r#""response_format":{written}"#))), expected);
    }
}

#[test]
fn an_escaped_nul_and_a_pair_of_surrogates_are_text() {
    let request = parse(&saying(r#"{"role":"user","content":"a\u0000b \ud83d\ude00"}"#)).request;
    assert_eq!(request.messages[0].content.text(), "a\0b \u{1f600}");
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = ChatRequest::parse(&bytes);
    }

    #[test]
    fn anything_that_looks_like_a_request_is_read_or_refused(
        pieces in proptest::collection::vec(
            prop::sample::select(vec![
                "{", "}", "[", "]", ",", ":", "null", "true", "1", "-2.5", "\"m\"", "\"model\":", "\"messages\":",
                "\"role\":", "\"user\"", "\"content\":", "\"tools\":", "\"function\":", "\"name\":", "\"stop\":",
                "\"tool_choice\":", "\"response_format\":", "\"type\":", "\"json_schema\"",
            ]),
            0..40,
        ),
    ) {
        let _ = ChatRequest::parse(pieces.concat().as_bytes());
    }

    #[test]
    fn the_text_of_messages_arrives_as_it_was_sent(
        texts in proptest::collection::vec((prop::sample::select(vec!["system", "user", "assistant"]), ".*"), 1..6),
    ) {
        let messages: Vec<Value> = texts
            .iter()
            .map(|(role, text)| json!({ "role": role, "content": text }))
            .collect();
        let body = json!({ "model": "m", "messages": messages }).to_string();
        let read: Vec<(String, String)> = parse(&body)
            .request
            .messages
            .into_iter()
            .map(|message| (message.role.as_str().to_owned(), message.content.text().into_owned()))
            .collect();
        let sent: Vec<(String, String)> =
            texts.iter().map(|(role, text)| ((*role).to_owned(), text.clone())).collect();
        prop_assert_eq!(read, sent);
    }
}

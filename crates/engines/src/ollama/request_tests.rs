use std::time::{Duration, Instant};

use hob_core::{AnswerDefaults, Image, JsonSchema, MaxTokens, Sampling, Temperature, ToolDefinition};
use serde_json::json;

use super::*;

const WHOLE: OllamaBodyOptions =
    OllamaBodyOptions { reply_mode: ReplyMode::Complete, thinking: Thinking::Level, answer: 0 };

fn written_as(form: OllamaBodyOptions, request: &GenerateRequest) -> Value {
    serde_json::to_value(Body::of(request, form).unwrap()).unwrap()
}

fn written(request: &GenerateRequest) -> Value {
    written_as(WHOLE, request)
}

fn refused(request: &GenerateRequest) -> String {
    let refused = check(request).and_then(|_| Body::of(request, WHOLE).map(drop));
    refused.unwrap_err().field
}

fn ignored(request: &GenerateRequest) -> Vec<String> {
    check(request).unwrap().iter().map(|warning| warning.text().into_owned()).collect()
}

fn saying(messages: Vec<Message>) -> GenerateRequest {
    GenerateRequest { model: "m".into(), messages, ..GenerateRequest::default() }
}

fn asking(text: &str) -> GenerateRequest {
    saying(vec![Message::new(Role::User, text)])
}

fn with_extra(fields: Value) -> GenerateRequest {
    let Value::Object(extra) = fields else { panic!("an object") };
    GenerateRequest { extra, ..asking("hi") }
}

fn with_tools(tool_choice: Option<ToolChoice>) -> GenerateRequest {
    GenerateRequest {
        tools: vec![ToolDefinition { name: "now".into(), description: None, parameters: None, strict: None }],
        tool_choice,
        ..asking("hi")
    }
}

fn calling(id: &str, arguments: &str) -> Message {
    let call = ToolCall { id: id.into(), name: "weather".into(), arguments: arguments.into() };
    Message { content: Content::Empty, tool_calls: vec![call], ..Message::new(Role::Assistant, "") }
}

#[test]
fn a_plain_question_has_the_documented_defaults() {
    assert_eq!(
        written(&asking("hi")),
        json!({
            "model": "m",
            "messages": [{ "role": "user", "content": "hi" }],
            "stream": false,
            "options": { "temperature": 0.7, "num_predict": 1024 },
            "truncate": false,
            "shift": false,
        })
    );
}

#[test]
fn a_conversation_is_only_cut_for_a_caller_who_wants_it() {
    let request = with_extra(json!({ "truncate": true, "shift": null }));
    let body = written(&request);
    assert_eq!((&body["truncate"], &body["shift"]), (&json!(true), &json!(false)));
    assert_eq!(ignored(&request), [""; 0]);
}

#[test]
fn every_parameter_ollama_has_reaches_it() {
    let request = GenerateRequest {
        temperature: Some(Temperature::new(0.1).unwrap()),
        max_tokens: Some(MaxTokens::new(5).unwrap()),
        sampling: Sampling {
            top_p: Some(0.9),
            stop: vec!["END".into()],
            seed: Some(7),
            presence_penalty: Some(0.5),
            frequency_penalty: Some(-0.5),
            n: std::num::NonZeroU32::new(1),
            logprobs: true,
            top_logprobs: Some(3),
        },
        response_format: ResponseFormat::JsonObject,
        ..asking("hi")
    };
    assert_eq!(
        written_as(OllamaBodyOptions { reply_mode: ReplyMode::Streamed, ..WHOLE }, &request),
        json!({
            "model": "m",
            "messages": [{ "role": "user", "content": "hi" }],
            "format": "json",
            "stream": true,
            "options": {
                "temperature": 0.1,
                "num_predict": 5,
                "top_p": 0.9,
                "seed": 7,
                "stop": ["END"],
                "presence_penalty": 0.5,
                "frequency_penalty": -0.5,
            },
            "truncate": false,
            "shift": false,
            "logprobs": true,
            "top_logprobs": 3,
        })
    );
}

#[test]
fn a_schema_is_the_format_itself() {
    let schema = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    let request = GenerateRequest {
        response_format: ResponseFormat::JsonSchema(JsonSchema {
            name: "city".into(),
            description: None,
            schema: schema.clone(),
            strict: Some(true),
        }),
        ..asking("hi")
    };
    assert_eq!(written(&request)["format"], schema);
}

#[test]
fn ollamas_own_fields_are_sent_and_the_caller_overrides_the_options() {
    let request = GenerateRequest {
        max_tokens: Some(MaxTokens::new(5).unwrap()),
        ..with_extra(json!({
            "keep_alive": "10m",
            "think": false,
            "user": null,
            "options": { "temperature": 0.2, "num_predict": 9, "num_ctx": 1, "top_k": 2 },
            "num_ctx": 4096,
        }))
    };
    let body = written(&request);
    assert_eq!(
        (&body["keep_alive"], &body["think"], &body["options"]),
        (
            &json!("10m"),
            &json!(false),
            &json!({ "temperature": 0.2, "num_predict": 5, "num_ctx": 4096, "top_k": 2 }),
        )
    );
    assert_eq!(body.get("user"), None);
}

#[test]
fn unsupported_fields_are_refused_by_name_for_ollama() {
    let several = Sampling { n: std::num::NonZeroU32::new(MAX_ANSWERS + 1), ..Sampling::default() };
    assert_eq!(refused(&GenerateRequest { sampling: several, ..asking("hi") }), "n");
    assert_eq!(refused(&with_extra(json!({ "logit_bias": { "7": 1 } }))), "logit_bias");
    assert_eq!(refused(&with_extra(json!({ "audio": { "voice": "x" } }))), "audio");
    assert_eq!(refused(&with_extra(json!({ "options": 7 }))), "options");
    assert_eq!(refused(&with_extra(json!({ "reasoning_effort": "a lot" }))), "reasoning_effort");
    assert_eq!(refused(&with_tools(Some(ToolChoice::Function("never".into())))), "tool_choice");
}

#[test]
fn undocumented_fields_are_ignored_and_named() {
    let request = with_extra(json!({ "future_field": 1, "logit_bias": {}, "user": "ann", "num_ctx": 4096 }));
    assert_eq!(ignored(&request), ["ignored=future_field", "ignored=logit_bias"]);
    assert_eq!(written(&request).get("future_field"), None);
}

#[test]
fn defaults_that_are_turned_off_are_not_sent() {
    let defaults = AnswerDefaults { temperature: None, max_tokens: None };
    assert_eq!(written(&GenerateRequest { defaults, ..asking("hi") })["options"], json!({}));
}

#[test]
fn a_demanded_call_is_a_format_and_an_instruction() {
    let demanded = written(&with_tools(Some(ToolChoice::Required)));
    assert_eq!(demanded["format"], json!({ "type": "object", "properties": {} }));
    assert_eq!(demanded.get("tools"), None);
    let [system, user] = demanded["messages"].as_array().unwrap().as_slice() else { panic!("{demanded}") };
    assert_eq!((&system["role"], &user["role"]), (&json!("system"), &json!("user")));
    assert!(system["content"].as_str().is_some_and(|words| words.contains("\"name\":\"now\"")), "{system}");

    let kind = Message::new(Role::System, "Be kind.");
    let named = with_tools(Some(ToolChoice::Function("now".into())));
    let request = GenerateRequest { messages: vec![kind, named.messages[0].clone()], ..named };
    let messages = written(&request)["messages"].clone();
    assert_eq!(messages.as_array().map(Vec::len), Some(2));
    assert!(messages[0]["content"].as_str().is_some_and(|words| words.starts_with("Be kind.\n\nCall this")));
}

#[test]
fn an_effort_is_how_much_to_think() {
    for (effort, level, switch) in [
        ("none", json!(false), json!(false)),
        ("minimal", json!("low"), json!(true)),
        ("medium", json!("medium"), json!(true)),
        ("high", json!("high"), json!(true)),
    ] {
        let request = with_extra(json!({ "reasoning_effort": effort }));
        assert_eq!(written(&request)["think"], level);
        assert_eq!(
            written_as(OllamaBodyOptions { thinking: Thinking::Switch, ..WHOLE }, &request)["think"],
            switch
        );
        assert_eq!(ignored(&request), [""; 0]);
    }
    let request = with_extra(json!({ "reasoning_effort": "high" }));
    assert_eq!(
        written_as(OllamaBodyOptions { thinking: Thinking::LeftOut, ..WHOLE }, &request).get("think"),
        None
    );
    // Ollama's own field overrides it.
    assert_eq!(
        written(&with_extra(json!({ "reasoning_effort": "high", "think": false })))["think"],
        json!(false)
    );
}

#[test]
fn further_answers_have_seeds_of_their_own() {
    let sampling = Sampling { seed: Some(i64::MAX), n: std::num::NonZeroU32::new(2), ..Sampling::default() };
    let request = GenerateRequest { sampling, ..asking("hi") };
    assert_eq!(written(&request)["options"]["seed"], json!(i64::MAX));
    assert_eq!(
        written_as(OllamaBodyOptions { answer: 1, ..WHOLE }, &request)["options"]["seed"],
        json!(i64::MIN)
    );
}

#[test]
fn tools_are_offered_unless_none_may_be_called() {
    let offered = json!([{ "type": "function", "function": { "name": "now" } }]);
    let auto = GenerateRequest { parallel_tool_calls: Some(true), ..with_tools(Some(ToolChoice::Auto)) };
    assert_eq!(written(&auto)["tools"], offered);
    assert_eq!(written(&with_tools(None))["tools"], offered);
    assert_eq!(written(&with_tools(Some(ToolChoice::None))).get("tools"), None);
}

#[test]
fn calls_in_the_history_have_objects_and_their_results_have_names() {
    let request = saying(vec![
        Message::new(Role::User, "weather?"),
        calling("c1", "{\"city\": \"Rome\"}"),
        Message::tool_result("c1", "11 degrees"),
        calling("c2", ""),
        Message::tool_result("unheard of", "?"),
    ]);
    assert_eq!(
        written(&request)["messages"],
        json!([
            { "role": "user", "content": "weather?" },
            { "role": "assistant", "content": "", "tool_calls": [
                { "function": { "name": "weather", "arguments": { "city": "Rome" } } }
            ] },
            { "role": "tool", "content": "11 degrees", "tool_name": "weather" },
            { "role": "assistant", "content": "", "tool_calls": [
                { "function": { "name": "weather", "arguments": {} } }
            ] },
            { "role": "tool", "content": "?" },
        ])
    );
}

/// A search through all earlier calls for each result takes far longer than the limit.
#[test]
fn many_results_find_their_calls_in_linear_time() {
    let ids: Vec<String> = (0..20_000).map(|number| format!("call_{number:05}")).collect();
    let call = |id: &String| ToolCall { id: id.clone(), name: "f".into(), arguments: String::new() };
    let calls = ids.iter().map(call).collect();
    let mut messages = vec![Message { tool_calls: calls, ..Message::new(Role::Assistant, "") }];
    messages.extend(ids.iter().map(|_| Message::tool_result("call_19999", "11")));
    let request = saying(messages);
    let began = Instant::now();
    Body::of(&request, WHOLE).unwrap();
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[test]
fn arguments_that_are_not_an_object_are_named_with_their_position() {
    for arguments in ["{\"city\":", "\"Paris\"", "[1]"] {
        let request = saying(vec![Message::new(Role::User, "weather?"), calling("c1", arguments)]);
        let error = Body::of(&request, WHOLE).unwrap_err();
        assert_eq!(error.field, "messages[1].tool_calls[0].function.arguments");
        assert!(error.hint.is_some_and(|hint| hint.contains("JSON object")));
    }
}

#[test]
fn pictures_travel_inside_or_not_at_all() {
    let showing = |url: &str| {
        let image = Image { url: url.into(), detail: None };
        let content =
            Content::Parts(vec![ContentPart::Text("what is it?".into()), ContentPart::Image(image)]);
        saying(vec![Message { content, ..Message::new(Role::User, "") }])
    };
    assert_eq!(
        written(&showing("data:image/png;base64,AAAA"))["messages"][0],
        json!({ "role": "user", "content": "what is it?", "images": ["AAAA"] })
    );
    assert_eq!(refused(&showing("https://example.org/cat.png")), "messages[0].content[1].image_url");
}

#[test]
fn an_answer_sent_back_as_it_came_keeps_its_thoughts() {
    let answered = |extra: Value| {
        let Value::Object(extra) = extra else { panic!("an object") };
        saying(vec![Message { extra, ..Message::new(Role::Assistant, "4") }])
    };
    assert_eq!(
        written(&answered(
            json!({ "reasoning_content": "2 and 2", "refusal": null, "annotations": [], "audio": {} })
        ))["messages"][0],
        json!({ "role": "assistant", "content": "4", "thinking": "2 and 2" })
    );
    assert_eq!(refused(&answered(json!({ "audio": { "id": "a1" } }))), "messages[0].audio");
}

use hob_core::{AnswerDefaults, Image, JsonSchema, MaxTokens, Sampling, Temperature};

use super::*;

const WHOLE: ChatBodyOptions = ChatBodyOptions {
    reply_mode: ReplyMode::Complete,
    tools: ToolsField::Offered,
    length_field: LengthField::MaxTokens,
    reasoning: ReasoningFields::Text,
};

fn written(request: &GenerateRequest, options: ChatBodyOptions) -> Value {
    serde_json::from_slice(&body(request, options).unwrap()).unwrap()
}

fn asking(text: &str) -> GenerateRequest {
    GenerateRequest {
        model: "m".into(),
        messages: vec![Message::new(Role::User, text)],
        ..GenerateRequest::default()
    }
}

#[test]
fn a_plain_question_has_the_documented_defaults() {
    assert_eq!(
        written(&asking("hi"), WHOLE),
        json!({
            "model": "m",
            "messages": [{ "role": "user", "content": "hi" }],
            "temperature": 0.7,
            "max_tokens": 1024,
            "stream": false,
        })
    );
}

#[test]
fn defaults_that_are_turned_off_are_not_sent() {
    let defaults = AnswerDefaults { temperature: None, max_tokens: None };
    let request = GenerateRequest { defaults, ..asking("hi") };
    for length_field in [LengthField::MaxTokens, LengthField::MaxCompletionTokens] {
        assert_eq!(
            written(&request, ChatBodyOptions { length_field, ..WHOLE }),
            json!({ "model": "m", "messages": [{ "role": "user", "content": "hi" }], "stream": false })
        );
    }
    let defaults =
        AnswerDefaults { temperature: Temperature::new(0.2).ok(), max_tokens: MaxTokens::new(9).ok() };
    let configured = written(&GenerateRequest { defaults, ..asking("hi") }, WHOLE);
    assert_eq!((&configured["temperature"], &configured["max_tokens"]), (&json!(0.2), &json!(9)));
}

#[test]
fn every_parameter_of_the_caller_reaches_the_engine() {
    let request = GenerateRequest {
        temperature: Some(Temperature::new(0.1).unwrap()),
        max_tokens: Some(MaxTokens::new(5).unwrap()),
        sampling: Sampling {
            top_p: Some(0.9),
            stop: vec!["END".into()],
            seed: Some(7),
            presence_penalty: Some(0.5),
            frequency_penalty: Some(-0.5),
            n: std::num::NonZeroU32::new(2),
            logprobs: true,
            top_logprobs: Some(3),
        },
        response_format: ResponseFormat::JsonSchema(JsonSchema {
            name: "city".into(),
            description: None,
            schema: json!({ "type": "object" }),
            strict: Some(true),
        }),
        extra: Map::from_iter([("top_k".to_owned(), json!(20))]),
        ..asking("hi")
    };
    assert_eq!(
        written(&request, ChatBodyOptions { reply_mode: ReplyMode::Streamed, ..WHOLE }),
        json!({
            "model": "m",
            "messages": [{ "role": "user", "content": "hi" }],
            "temperature": 0.1,
            "max_tokens": 5,
            "stream": true,
            "stream_options": { "include_usage": true },
            "top_p": 0.9,
            "stop": ["END"],
            "seed": 7,
            "presence_penalty": 0.5,
            "frequency_penalty": -0.5,
            "n": 2,
            "logprobs": true,
            "top_logprobs": 3,
            "response_format": {
                "type": "json_schema",
                "json_schema": { "name": "city", "schema": { "type": "object" }, "strict": true },
            },
            "top_k": 20,
        })
    );
}

#[test]
fn tools_and_their_history_are_written_as_clients_write_them() {
    let call = ToolCall { id: "c1".into(), name: "weather".into(), arguments: "{\"city\":\"Rome\"}".into() };
    let request = GenerateRequest {
        messages: vec![
            Message::new(Role::User, "weather?"),
            Message { content: Content::Empty, tool_calls: vec![call], ..Message::new(Role::Assistant, "") },
            Message::tool_result("c1", "11 degrees"),
        ],
        tools: vec![ToolDefinition {
            name: "weather".into(),
            description: Some("tells the weather".into()),
            parameters: Some(json!({ "type": "object" })),
            strict: None,
        }],
        tool_choice: Some(ToolChoice::Function("weather".into())),
        parallel_tool_calls: Some(false),
        ..asking("")
    };
    let full = written(&request, WHOLE);
    assert_eq!(
        full["messages"],
        json!([
            { "role": "user", "content": "weather?" },
            { "role": "assistant", "content": null, "tool_calls": [
                { "id": "c1", "type": "function", "function": { "name": "weather", "arguments": "{\"city\":\"Rome\"}" } }
            ] },
            { "role": "tool", "content": "11 degrees", "tool_call_id": "c1" },
        ])
    );
    assert_eq!(
        full["tools"],
        json!([{ "type": "function", "function": {
            "name": "weather", "description": "tells the weather", "parameters": { "type": "object" }
        } }])
    );
    assert_eq!(full["tool_choice"], json!({ "type": "function", "function": { "name": "weather" } }));
    assert_eq!(full["parallel_tool_calls"], json!(false));

    let withheld = written(&request, ChatBodyOptions { tools: ToolsField::Withheld, ..WHOLE });
    let absent = ["tools", "tool_choice", "parallel_tool_calls"].map(|field| withheld.get(field));
    assert_eq!(absent, [None, None, None]);
}

#[test]
fn ids_of_calls_carry_a_providers_signature_only_to_a_proxy() {
    let signed = "fc-1--thought--Ab-_zQ";
    let call = ToolCall { id: signed.into(), name: "now".into(), arguments: "{}".into() };
    let request = GenerateRequest {
        messages: vec![
            Message { tool_calls: vec![call], ..Message::new(Role::Assistant, "") },
            Message::tool_result(signed, "noon"),
        ],
        ..asking("")
    };
    let ids = |reasoning| {
        let messages = written(&request, ChatBodyOptions { reasoning, ..WHOLE })["messages"].clone();
        [&messages[0]["tool_calls"][0]["id"], &messages[1]["tool_call_id"]].map(Value::clone)
    };
    for reasoning in [ReasoningFields::LeftOut, ReasoningFields::Demanded, ReasoningFields::Text] {
        assert_eq!(ids(reasoning), ["fc-1", "fc-1"]);
    }
    assert_eq!(ids(ReasoningFields::All), [signed, signed]);
}

#[test]
fn ids_that_openai_refuses_become_short() {
    let ids = |id: &str, reasoning| {
        let call = ToolCall { id: id.into(), name: "now".into(), arguments: "{}".into() };
        let messages = vec![
            Message { tool_calls: vec![call], ..Message::new(Role::Assistant, "") },
            Message::tool_result(id, "noon"),
        ];
        let request = GenerateRequest { messages, ..asking("") };
        let messages = written(&request, ChatBodyOptions { reasoning, ..WHOLE })["messages"].clone();
        let id = |value: &Value| value.as_str().unwrap().to_owned();
        (id(&messages[0]["tool_calls"][0]["id"]), id(&messages[1]["tool_call_id"]))
    };
    let long = "chatcmpl-tool-0123456789abcdef0123456789abcdef";
    let (called, answered) = ids(long, ReasoningFields::LeftOut);
    assert_eq!(called, answered);
    assert!(call_id::is_short(&called), "{called}");
    for (id, reasoning) in
        [(&long[..40], ReasoningFields::LeftOut), (long, ReasoningFields::Text), (long, ReasoningFields::All)]
    {
        assert_eq!(ids(id, reasoning), (id.to_owned(), id.to_owned()));
    }
}

#[test]
fn every_answer_has_the_reasoning_that_a_provider_demands() {
    let thinking = |fields: Value| {
        let extra = fields.as_object().unwrap().clone();
        Message { extra, ..Message::new(Role::Assistant, "4") }
    };
    let messages = vec![
        Message::new(Role::User, "2 + 2?"),
        thinking(json!({ "reasoning_content": "2 and 2", "thinking_blocks": [], "refusal": null })),
        thinking(json!({ "reasoning_content": "", "reasoning": "is 4" })),
        thinking(json!({})),
    ];
    let request = GenerateRequest { messages, ..asking("") };
    let demanded = ChatBodyOptions { reasoning: ReasoningFields::Demanded, ..WHOLE };
    assert_eq!(
        written(&request, demanded)["messages"],
        json!([
            { "role": "user", "content": "2 + 2?" },
            { "role": "assistant", "content": "4", "reasoning_content": "2 and 2", "refusal": null },
            { "role": "assistant", "content": "4", "reasoning_content": "is 4" },
            { "role": "assistant", "content": "4", "reasoning_content": " " },
        ])
    );
}

#[test]
fn a_call_without_arguments_has_an_empty_object() {
    let call =
        |arguments: &str| ToolCall { id: "c1".into(), name: "now".into(), arguments: arguments.into() };
    for (arguments, expected) in [("", "{}"), (" \n", "{}"), ("{\"a\"", "{\"a\"")] {
        let said = Message { tool_calls: vec![call(arguments)], ..Message::new(Role::Assistant, "") };
        let request = GenerateRequest { messages: vec![said], ..asking("") };
        let function = &written(&request, WHOLE)["messages"][0]["tool_calls"][0]["function"];
        assert_eq!(function["arguments"], expected, "{arguments}");
    }
}

#[test]
fn pictures_and_unknown_message_fields_go_along() {
    let picture = Image { url: "data:image/png;base64,AAAA".into(), detail: Some("low".into()) };
    let message = Message {
        name: Some("ann".into()),
        extra: Map::from_iter([("cache_control".to_owned(), json!({ "type": "ephemeral" }))]),
        ..Message::new(Role::User, "")
    };
    let content = Content::Parts(vec![ContentPart::Text("what is it?".into()), ContentPart::Image(picture)]);
    let request = GenerateRequest { messages: vec![Message { content, ..message }], ..asking("") };
    assert_eq!(
        written(&request, WHOLE)["messages"][0],
        json!({
            "role": "user",
            "content": [
                { "type": "text", "text": "what is it?" },
                { "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA", "detail": "low" } },
            ],
            "name": "ann",
            "cache_control": { "type": "ephemeral" },
        })
    );
}

#[test]
fn the_newer_length_field_leaves_an_unasked_temperature_out() {
    let newer = ChatBodyOptions { length_field: LengthField::MaxCompletionTokens, ..WHOLE };
    let body = written(&asking("hi"), newer);
    assert_eq!(
        (body.get("temperature"), body.get("max_tokens"), body.get("max_completion_tokens")),
        (None, None, Some(&json!(1024)))
    );
}

#[test]
fn reasoning_of_earlier_answers_is_sent_only_where_it_is_read() {
    let mut assistant = Message::new(Role::Assistant, "4");
    let thoughts = ["reasoning", "reasoning_content", "reasoning_details", "thinking"];
    for name in thoughts {
        assistant.extra.insert(name.into(), json!("2 and 2"));
    }
    assistant.extra.insert("refusal".into(), json!("no"));
    assistant.extra.insert("thinking_blocks".into(), json!([{ "type": "redacted_thinking", "data": "d" }]));
    let request = GenerateRequest { messages: vec![assistant], ..GenerateRequest::default() };
    let sent = |reasoning| {
        let body = written(&request, ChatBodyOptions { reasoning, ..WHOLE });
        let message = &body["messages"][0];
        assert_eq!((&message["content"], &message["refusal"]), (&json!("4"), &json!("no")));
        let is_text_sent = thoughts.map(|name| message.get(name).is_some());
        (is_text_sent, message.get("thinking_blocks").is_some())
    };
    assert_eq!(sent(ReasoningFields::All), ([true; 4], true));
    assert_eq!(sent(ReasoningFields::Text), ([true; 4], false));
    assert_eq!(sent(ReasoningFields::LeftOut), ([false; 4], false));
}

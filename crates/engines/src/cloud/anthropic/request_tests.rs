use hob_core::{
    Content, ContentPart, Image, JsonSchema, MaxTokens, Message, Role, Sampling, Temperature, ToolCall,
};

use super::*;

fn written(request: &GenerateRequest) -> Value {
    serde_json::to_value(body(request, ReplyMode::Complete, request.max_tokens().unwrap_or(1024)).unwrap())
        .unwrap()
}

fn refused(request: &GenerateRequest) -> String {
    body(request, ReplyMode::Complete, request.max_tokens().unwrap_or(1024)).unwrap_err().field
}

fn asking(messages: Vec<Message>) -> GenerateRequest {
    GenerateRequest { model: "claude-x".into(), messages, ..GenerateRequest::default() }
}

fn hi() -> GenerateRequest {
    asking(vec![Message::new(Role::User, "hi")])
}

fn call(id: &str, arguments: &str) -> ToolCall {
    ToolCall { id: id.into(), name: "weather".into(), arguments: arguments.into() }
}

fn picture(url: &str) -> ContentPart {
    ContentPart::Image(Image { url: url.into(), detail: None })
}

#[test]
fn a_plain_question_has_a_token_limit_and_no_temperature() {
    assert_eq!(
        written(&hi()),
        json!({
            "model": "claude-x",
            "max_tokens": 1024,
            "messages": [{ "role": "user", "content": [{ "type": "text", "text": "hi" }] }],
            "stream": false,
        })
    );
}

#[test]
fn every_parameter_that_has_a_counterpart_is_sent() {
    let request = GenerateRequest {
        temperature: Some(Temperature::new(1.0).unwrap()),
        max_tokens: Some(MaxTokens::new(5).unwrap()),
        sampling: Sampling {
            top_p: Some(0.9),
            stop: vec!["END".into()],
            n: std::num::NonZeroU32::new(1),
            presence_penalty: Some(0.0),
            ..Sampling::default()
        },
        response_format: ResponseFormat::JsonSchema(JsonSchema {
            name: "city".into(),
            description: None,
            schema: json!({ "type": "object" }),
            strict: Some(true),
        }),
        extra: Map::from_iter([
            ("top_k".to_owned(), json!(20)),
            ("output_config".to_owned(), json!({ "effort": "low" })),
            ("user".to_owned(), Value::Null),
        ]),
        ..hi()
    };
    let body = serde_json::to_value(body(&request, ReplyMode::Streamed, 5).unwrap()).unwrap();
    assert_eq!(
        body,
        json!({
            "model": "claude-x",
            "max_tokens": 5,
            "messages": [{ "role": "user", "content": [{ "type": "text", "text": "hi" }] }],
            "stream": true,
            "temperature": 1.0,
            "top_p": 0.9,
            "stop_sequences": ["END"],
            "top_k": 20,
            "output_config": {
                "effort": "low",
                "format": { "type": "json_schema", "schema": { "type": "object" } },
            },
        })
    );
}

#[test]
fn unsupported_fields_are_refused_by_name_for_anthropic() {
    let sampling = |sampling: Sampling| refused(&GenerateRequest { sampling, ..hi() });
    let hot = GenerateRequest { temperature: Some(Temperature::new(1.1).unwrap()), ..hi() };
    let json_object = GenerateRequest { response_format: ResponseFormat::JsonObject, ..hi() };
    let foreign =
        GenerateRequest { extra: Map::from_iter([("logit_bias".to_owned(), json!({ "5": 1 }))]), ..hi() };
    let named = asking(vec![Message { name: Some("ann".into()), ..Message::new(Role::User, "hi") }]);
    assert_eq!(
        [
            refused(&hot),
            refused(&json_object),
            refused(&foreign),
            refused(&named),
            sampling(Sampling { n: std::num::NonZeroU32::new(2), ..Sampling::default() }),
            sampling(Sampling { logprobs: true, ..Sampling::default() }),
            sampling(Sampling { seed: Some(1), ..Sampling::default() }),
            sampling(Sampling { frequency_penalty: Some(0.5), ..Sampling::default() }),
        ],
        [
            "temperature",
            "response_format",
            "logit_bias",
            "messages[0].name",
            "n",
            "logprobs",
            "seed",
            "frequency_penalty",
        ]
    );
}

#[test]
fn a_tool_history_alternates_and_keeps_every_system_message() {
    let request = asking(vec![
        Message::new(Role::System, "Be kind."),
        Message::new(Role::User, "weather in Rome"),
        Message::new(Role::User, "and Oslo?"),
        Message {
            tool_calls: vec![call("t1", "{\"city\":\"Rome\"}"), call("t2", "")],
            ..Message::new(Role::Assistant, "Let me see.")
        },
        Message::tool_result("t1", "11 degrees"),
        Message::tool_result("t2", ""),
        Message::new(Role::System, "Be brief."),
        Message::new(Role::User, "well?"),
        Message {
            content: Content::Empty,
            tool_calls: vec![call("t3", "{}")],
            ..Message::new(Role::Assistant, "")
        },
    ]);
    let body = written(&request);
    assert_eq!(
        body["system"],
        json!([{ "type": "text", "text": "Be kind." }, { "type": "text", "text": "Be brief." }])
    );
    assert_eq!(
        body["messages"],
        json!([
            { "role": "user", "content": [
                { "type": "text", "text": "weather in Rome" },
                { "type": "text", "text": "and Oslo?" },
            ] },
            { "role": "assistant", "content": [
                { "type": "text", "text": "Let me see." },
                { "type": "tool_use", "id": "t1", "name": "weather", "input": { "city": "Rome" } },
                { "type": "tool_use", "id": "t2", "name": "weather", "input": {} },
            ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "t1", "content": [{ "type": "text", "text": "11 degrees" }] },
                { "type": "tool_result", "tool_use_id": "t2" },
                { "type": "text", "text": "well?" },
            ] },
            { "role": "assistant", "content": [
                { "type": "tool_use", "id": "t3", "name": "weather", "input": {} },
            ] },
        ])
    );
}

#[test]
fn ids_of_calls_have_no_signature_of_another_provider() {
    let signed = "t1--thought--Ab-_zQ";
    let request = asking(vec![
        Message { tool_calls: vec![call(signed, "{}")], ..Message::new(Role::Assistant, "") },
        Message::tool_result(signed, "noon"),
    ]);
    let messages = written(&request)["messages"].clone();
    let ids = [&messages[0]["content"][0]["id"], &messages[1]["content"][0]["tool_use_id"]];
    assert_eq!(ids, ["t1", "t1"]);
}

#[test]
fn ids_that_anthropic_refuses_are_replaced_in_calls_and_results() {
    for (id, stays) in [("functions.weather:0", false), ("", false), ("call_1-Z", true)] {
        let messages = written(&asking(vec![
            Message { tool_calls: vec![call(id, "{}")], ..Message::new(Role::Assistant, "") },
            Message::tool_result(id, "11 degrees"),
        ]))["messages"]
            .clone();
        let used = messages[0]["content"][0]["id"].as_str().unwrap();
        assert_eq!(messages[1]["content"][0]["tool_use_id"], used);
        assert_eq!(used == id, stays, "{id}");
        assert_eq!(hob_core::call_id::is_short(used), !stays, "{used}");
    }
}

#[test]
fn an_invalid_history_is_refused_with_its_position() {
    let broken = asking(vec![
        Message::new(Role::User, "hi"),
        Message {
            tool_calls: vec![call("t1", "{}"), call("t2", "{\"city\":")],
            ..Message::new(Role::Assistant, "")
        },
    ]);
    let orphan = asking(vec![Message::new(Role::Tool, "11 degrees")]);
    assert_eq!(
        [refused(&broken), refused(&orphan)],
        ["messages[1].tool_calls[1].function.arguments", "messages[0].tool_call_id"]
    );
}

#[test]
fn pictures_go_inline_or_by_address() {
    let parts = vec![
        ContentPart::Text("what is it?".into()),
        picture("data:image/png;base64,AAAA"),
        picture("https://example.org/cat.png"),
    ];
    let request = asking(vec![Message { content: Content::Parts(parts), ..Message::new(Role::User, "") }]);
    assert_eq!(
        written(&request)["messages"][0]["content"],
        json!([
            { "type": "text", "text": "what is it?" },
            { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AAAA" } },
            { "type": "image", "source": { "type": "url", "url": "https://example.org/cat.png" } },
        ])
    );
    let with = |role, url| {
        refused(&asking(vec![Message {
            content: Content::Parts(vec![ContentPart::Text("x".into()), picture(url)]),
            ..Message::new(role, "")
        }]))
    };
    let field = "messages[0].content[1].image_url";
    assert_eq!(with(Role::User, "file:///etc/passwd"), field);
    assert_eq!(with(Role::User, "data:image/png,raw"), field);
    assert_eq!(with(Role::Assistant, "data:image/png;base64,AAAA"), field);
}

#[test]
fn tools_and_the_choice_among_them_are_translated() {
    let tools = vec![
        ToolDefinition {
            name: "weather".into(),
            description: Some("tells the weather".into()),
            parameters: Some(json!({ "type": "object", "properties": { "city": { "type": "string" } } })),
            strict: Some(true),
        },
        ToolDefinition { name: "now".into(), description: None, parameters: None, strict: Some(false) },
    ];
    let request = GenerateRequest { tools, ..hi() };
    assert_eq!(
        written(&request)["tools"],
        json!([
            {
                "name": "weather",
                "description": "tells the weather",
                "input_schema": { "type": "object", "properties": { "city": { "type": "string" } } },
                "strict": true,
            },
            { "name": "now", "input_schema": { "type": "object", "properties": {} } },
        ])
    );
    let choice = |tool_choice: Option<ToolChoice>, parallel_tool_calls: Option<bool>| {
        written(&GenerateRequest { tool_choice, parallel_tool_calls, ..request.clone() })
            .get("tool_choice")
            .cloned()
    };
    assert_eq!(choice(None, Some(true)), None);
    assert_eq!(choice(None, Some(false)), Some(json!({ "type": "auto", "disable_parallel_tool_use": true })));
    assert_eq!(choice(Some(ToolChoice::Auto), None), Some(json!({ "type": "auto" })));
    assert_eq!(choice(Some(ToolChoice::Required), None), Some(json!({ "type": "any" })));
    assert_eq!(choice(Some(ToolChoice::None), Some(false)), Some(json!({ "type": "none" })));
    assert_eq!(
        choice(Some(ToolChoice::Function("now".into())), Some(false)),
        Some(json!({ "type": "tool", "name": "now", "disable_parallel_tool_use": true }))
    );
}

#[test]
fn undocumented_fields_are_dropped_and_named() {
    let extra = |value: Value| value.as_object().cloned().unwrap_or_default();
    let message = Message {
        extra: extra(json!({ "cache_control": { "type": "ephemeral" }, "refusal": null })),
        ..Message::new(Role::User, "hi")
    };
    let request = GenerateRequest {
        extra: extra(json!({ "future_field": 1, "store": true, "metadata": { "user_id": "ann" } })),
        ..asking(vec![message])
    };
    let body = body(&request, ReplyMode::Complete, 1024).unwrap();
    let ignored: Vec<String> = body.ignored.iter().map(|warning| warning.text().into_owned()).collect();
    assert_eq!(ignored, ["ignored=future_field", "ignored=messages[].cache_control", "ignored=store"]);
    assert_eq!(serde_json::to_value(&body).unwrap()["metadata"], json!({ "user_id": "ann" }));
}

fn with_extra(extra: Value) -> GenerateRequest {
    GenerateRequest { extra: extra.as_object().unwrap().clone(), ..hi() }
}

#[test]
fn the_effort_of_chat_completions_is_placed_unless_the_caller_used_anthropics_own_fields() {
    let placed = |request: &GenerateRequest| {
        let body = written(request);
        (body["thinking"].clone(), body["output_config"].clone())
    };
    let effort = |effort: &str| with_extra(json!({ "reasoning_effort": effort }));
    assert_eq!(placed(&effort("minimal")), (json!(null), json!({ "effort": "low" })));
    assert_eq!(placed(&effort("max")), (json!(null), json!({ "effort": "max" })));
    assert_eq!(placed(&effort("none")), (json!({ "type": "disabled" }), json!(null)));
    assert_eq!(refused(&effort("loud")), "reasoning_effort");
    let own = json!({ "type": "enabled", "budget_tokens": 2048 });
    let both = with_extra(json!({ "reasoning_effort": "high", "thinking": own }));
    assert_eq!(placed(&both), (own, json!(null)));
}

#[test]
fn a_request_of_anthropics_api_is_sent_in_its_own_words() {
    let anthropic = json!({ "thinking": { "type": "adaptive" }, "output_config": { "effort": "high" }, "metadata": { "user_id": "ann" } });
    let request = GenerateRequest {
        anthropic: anthropic.as_object().unwrap().clone(),
        ..with_extra(json!({ "reasoning_effort": "high" }))
    };
    let body = written(&request);
    for (field, value) in anthropic.as_object().unwrap() {
        assert_eq!(&body[field], value);
    }
    assert!(body.get("reasoning_effort").is_none());
}

#[test]
fn reasoning_that_anthropic_sealed_comes_first_and_unchanged() {
    let mut assistant =
        Message { tool_calls: vec![call("t1", "{}")], ..Message::new(Role::Assistant, "I look.") };
    assistant.extra.insert("reasoning_content".into(), json!("hm"));
    assistant.extra.insert(
        "thinking_blocks".into(),
        json!([
            { "type": "thinking", "thinking": "hm", "signature": "EqQB" },
            { "type": "redacted_thinking", "data": "Emw" },
            { "type": "thinking", "thinking": "not signed", "signature": "" },
            "nonsense",
        ]),
    );
    let body = written(&asking(vec![Message::new(Role::User, "hi"), assistant]));
    assert_eq!(
        body["messages"][1]["content"],
        json!([
            { "type": "thinking", "thinking": "hm", "signature": "EqQB" },
            { "type": "redacted_thinking", "data": "Emw" },
            { "type": "text", "text": "I look." },
            { "type": "tool_use", "id": "t1", "name": "weather", "input": {} },
        ])
    );
}

#[test]
fn a_pdf_is_a_document_and_other_files_are_refused() {
    let file = |data: &str| {
        let file = json!({ "type": "file", "file": { "filename": "a.pdf", "file_data": data } });
        asking(vec![Message::new(Role::User, Content::Parts(vec![ContentPart::Other(file)]))])
    };
    assert_eq!(
        written(&file("data:application/pdf;base64,JVBE"))["messages"][0]["content"],
        json!([{
            "type": "document",
            "source": { "type": "base64", "media_type": "application/pdf", "data": "JVBE" },
            "title": "a.pdf",
        }])
    );
    assert_eq!(refused(&file("data:audio/wav;base64,AAAA")), "messages[0].content[0].file");
}

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use hob_core::{
    Content, ContentPart, Image, JsonSchema, MaxTokens, Message, Role, Sampling, Temperature, ToolCall,
};

use super::*;
use crate::cloud::gemini::call_id;

fn written(request: &GenerateRequest) -> Value {
    serde_json::to_value(body(request).unwrap()).unwrap()
}

fn refused(request: &GenerateRequest) -> String {
    body(request).unwrap_err().field
}

fn asking(messages: Vec<Message>) -> GenerateRequest {
    GenerateRequest { model: "gemini-x".into(), messages, ..GenerateRequest::default() }
}

fn hi() -> GenerateRequest {
    asking(vec![Message::new(Role::User, "hi")])
}

fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall { id: id.into(), name: name.into(), arguments: arguments.into() }
}

fn with_picture(role: Role, url: &str) -> GenerateRequest {
    let picture = Image { url: url.into(), detail: None };
    asking(vec![Message {
        content: Content::Parts(vec![ContentPart::Text("what is it?".into()), ContentPart::Image(picture)]),
        ..Message::new(role, "")
    }])
}

#[test]
fn a_plain_question_has_a_token_limit_and_no_temperature() {
    assert_eq!(
        written(&hi()),
        json!({
            "contents": [{ "role": "user", "parts": [{ "text": "hi" }] }],
            "generationConfig": { "maxOutputTokens": 1024 },
        })
    );
}

#[test]
fn every_parameter_that_has_a_counterpart_is_sent() {
    let request = GenerateRequest {
        temperature: Some(Temperature::new(2.0).unwrap()),
        max_tokens: Some(MaxTokens::new(5).unwrap()),
        sampling: Sampling {
            top_p: Some(0.9),
            stop: vec!["END".into()],
            seed: Some(7),
            presence_penalty: Some(0.5),
            frequency_penalty: Some(-0.5),
            n: NonZeroU32::new(2),
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
            ("user".to_owned(), Value::Null),
            ("safetySettings".to_owned(), json!([])),
            (
                "generationConfig".to_owned(),
                json!({ "thinkingConfig": { "thinkingLevel": "low" }, "maxOutputTokens": 9 }),
            ),
        ]),
        ..hi()
    };
    assert_eq!(
        written(&request),
        json!({
            "contents": [{ "role": "user", "parts": [{ "text": "hi" }] }],
            "generationConfig": {
                "temperature": 2.0,
                "maxOutputTokens": 9,
                "topP": 0.9,
                "topK": 20,
                "stopSequences": ["END"],
                "seed": 7,
                "presencePenalty": 0.5,
                "frequencyPenalty": -0.5,
                "candidateCount": 2,
                "responseMimeType": "application/json",
                "responseJsonSchema": { "type": "object" },
                "thinkingConfig": { "thinkingLevel": "low" },
            },
            "safetySettings": [],
        })
    );
}

#[test]
fn any_json_is_asked_for_by_its_media_type() {
    let request = GenerateRequest { response_format: ResponseFormat::JsonObject, ..hi() };
    assert_eq!(
        written(&request)["generationConfig"],
        json!({ "maxOutputTokens": 1024, "responseMimeType": "application/json" })
    );
}

#[test]
fn unsupported_fields_are_refused_by_name_for_gemini() {
    let sampling = |sampling: Sampling| refused(&GenerateRequest { sampling, ..hi() });
    let extra = |name: &str, value: Value| {
        refused(&GenerateRequest { extra: Map::from_iter([(name.to_owned(), value)]), ..hi() })
    };
    assert_eq!(
        [
            sampling(Sampling { logprobs: true, ..Sampling::default() }),
            sampling(Sampling { seed: Some(1 << 40), ..Sampling::default() }),
            extra("logit_bias", json!({ "5": 1 })),
            extra("min_p", json!(0.1)),
            extra("generationConfig", json!(7)),
            refused(&with_picture(Role::User, "https://example.org/cat.png")),
            refused(&with_picture(Role::System, "data:image/png;base64,AAAA")),
        ],
        [
            "logprobs",
            "seed",
            "logit_bias",
            "min_p",
            "generationConfig",
            "messages[0].content[1].image_url",
            "messages[0].content[1].image_url",
        ]
    );
}

#[test]
fn undocumented_fields_are_dropped_and_named() {
    let extra = |value: Value| value.as_object().cloned().unwrap_or_default();
    let fields = extra(json!({ "future_field": { "a": 1 }, "verbosity": "low", "user": "ann", "top_k": 3 }));
    let request = GenerateRequest { extra: fields, ..hi() };
    let body = body(&request).unwrap();
    assert_eq!(
        body.ignored,
        [AnswerWarning::Ignored("future_field".into()), AnswerWarning::Ignored("verbosity".into())]
    );
    let written = serde_json::to_value(&body).unwrap();
    assert_eq!((written.get("future_field"), written.get("ignored")), (None, None));
}

#[test]
fn defaults_that_are_turned_off_are_not_sent() {
    let defaults = hob_core::AnswerDefaults { temperature: None, max_tokens: None };
    let written = written(&GenerateRequest { defaults, ..hi() });
    assert_eq!(written["generationConfig"], json!({}));
}

#[test]
fn pictures_go_inline() {
    assert_eq!(
        written(&with_picture(Role::User, "data:image/png;base64,AAAA"))["contents"],
        json!([{ "role": "user", "parts": [
            { "text": "what is it?" },
            { "inlineData": { "mimeType": "image/png", "data": "AAAA" } },
        ] }])
    );
}

#[test]
fn results_with_too_many_values_stay_texts() {
    let values = |count: usize| format!("{{\"a\":[{}0]}}", "0,".repeat(count));
    let request = asking(vec![
        Message {
            tool_calls: vec![call("c1", "f", ""), call("c2", "f", "")],
            ..Message::new(Role::Assistant, "")
        },
        Message::tool_result("c1", values(60_000)),
        Message::tool_result("c2", values(60_000)),
    ]);
    let body = written(&request);
    let result = |at: usize| body["contents"][1]["parts"][at]["functionResponse"]["response"].clone();
    assert!(result(0)["a"].is_array());
    assert_eq!(result(1), json!({ "result": values(60_000) }));
}

#[test]
fn a_tool_history_alternates_and_keeps_every_system_message() {
    let signed = call_id::join(Some("fc-1".to_owned()), Some("Ab+/zQ=="));
    let request = asking(vec![
        Message::new(Role::System, "Be kind."),
        Message::new(Role::User, "weather in Rome"),
        Message::new(Role::User, "and the time?"),
        Message {
            tool_calls: vec![call(&signed, "weather", "{\"city\":\"Rome\"}"), call("c2", "now", "")],
            ..Message::new(Role::Assistant, "Let me see.")
        },
        Message::tool_result(signed.clone(), "{\"degrees\":11}"),
        Message::tool_result("c2", "noon"),
        Message::new(Role::System, "Be brief."),
        Message::new(Role::User, "well?"),
        Message {
            content: Content::Empty,
            tool_calls: vec![call("c3", "weather", "{}"), call("c4", "now", "{}")],
            ..Message::new(Role::Assistant, "")
        },
    ]);
    let body = written(&request);
    assert_eq!(
        body["systemInstruction"],
        json!({ "parts": [{ "text": "Be kind." }, { "text": "Be brief." }] })
    );
    assert_eq!(
        body["contents"],
        json!([
            { "role": "user", "parts": [{ "text": "weather in Rome" }, { "text": "and the time?" }] },
            { "role": "model", "parts": [
                { "text": "Let me see." },
                {
                    "functionCall": { "id": "fc-1", "name": "weather", "args": { "city": "Rome" } },
                    "thoughtSignature": "Ab+/zQ==",
                },
                { "functionCall": { "id": "c2", "name": "now", "args": {} } },
            ] },
            { "role": "user", "parts": [
                { "functionResponse": { "id": "fc-1", "name": "weather", "response": { "degrees": 11 } } },
                { "functionResponse": { "id": "c2", "name": "now", "response": { "result": "noon" } } },
                { "text": "well?" },
            ] },
            // A call that another model made carries Google's placeholder instead of a signature.
            { "role": "model", "parts": [
                {
                    "functionCall": { "id": "c3", "name": "weather", "args": {} },
                    "thoughtSignature": "skip_thought_signature_validator",
                },
                { "functionCall": { "id": "c4", "name": "now", "args": {} } },
            ] },
        ])
    );
}

#[test]
fn an_invalid_history_is_refused_with_its_position() {
    let of = |message: Message| asking(vec![Message::new(Role::User, "hi"), message]);
    let broken =
        of(Message { tool_calls: vec![call("c1", "f", "[1]")], ..Message::new(Role::Assistant, "") });
    assert_eq!(
        [
            refused(&broken),
            refused(&of(Message::tool_result("nobody", "11"))),
            refused(&of(Message::new(Role::Tool, "11"))),
        ],
        [
            "messages[1].tool_calls[0].function.arguments",
            "messages[1].tool_call_id",
            "messages[1].tool_call_id",
        ]
    );
}

#[test]
fn tools_and_the_choice_among_them_are_translated() {
    let schema = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    let tool = |strict| ToolDefinition {
        name: "weather".into(),
        description: Some("tells the weather".into()),
        parameters: Some(schema.clone()),
        strict,
    };
    let now = ToolDefinition { name: "now".into(), description: None, parameters: None, strict: None };
    let request = GenerateRequest { tools: vec![tool(None), now], ..hi() };
    assert_eq!(
        written(&request)["tools"],
        json!([{ "functionDeclarations": [
            { "name": "weather", "description": "tells the weather", "parametersJsonSchema": schema.clone() },
            { "name": "now" },
        ] }])
    );
    let mode = |tool_choice: Option<ToolChoice>, strict: Option<bool>| {
        written(&GenerateRequest { tools: vec![tool(strict)], tool_choice, ..hi() })
            .get("toolConfig")
            .map(|config| config["functionCallingConfig"].clone())
    };
    assert_eq!(mode(None, None), None);
    assert_eq!(mode(Some(ToolChoice::Auto), None), Some(json!({ "mode": "AUTO" })));
    assert_eq!(mode(None, Some(true)), Some(json!({ "mode": "VALIDATED" })));
    assert_eq!(mode(Some(ToolChoice::Required), Some(true)), Some(json!({ "mode": "ANY" })));
    assert_eq!(mode(Some(ToolChoice::None), None), Some(json!({ "mode": "NONE" })));
    assert_eq!(
        mode(Some(ToolChoice::Function("weather".into())), None),
        Some(json!({ "mode": "ANY", "allowedFunctionNames": ["weather"] }))
    );
    // Hob drops the other calls of the answer.
    let one_at_a_time = GenerateRequest { parallel_tool_calls: Some(false), ..request.clone() };
    assert_eq!(written(&one_at_a_time), written(&request));
}

/// A search through all earlier calls for each result takes far longer than the limit.
#[test]
fn many_results_find_their_calls_in_linear_time() {
    let ids: Vec<String> = (0..20_000).map(|number| format!("call_{number:05}")).collect();
    let calls = ids.iter().map(|id| call(id, "f", "")).collect();
    let mut messages = vec![Message { tool_calls: calls, ..Message::new(Role::Assistant, "") }];
    messages.extend(ids.iter().map(|_| Message::tool_result("call_19999", "11")));
    let request = asking(messages);
    let began = Instant::now();
    body(&request).unwrap();
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[test]
fn an_effort_is_a_number_of_tokens() {
    for (effort, tokens) in [("none", 0), ("low", 1_024), ("medium", 8_192), ("max", 24_576)] {
        let extra = json!({ "reasoning_effort": effort }).as_object().unwrap().clone();
        let body = written(&GenerateRequest { extra, ..hi() });
        assert_eq!(body["generationConfig"]["thinkingConfig"], json!({ "thinkingBudget": tokens }));
        assert!(body.get("reasoning_effort").is_none(), "{body}");
    }
    let extra = json!({ "reasoning_effort": 7 }).as_object().unwrap().clone();
    assert_eq!(refused(&GenerateRequest { extra, ..hi() }), "reasoning_effort");
}

#[test]
fn a_pdf_is_inline_data() {
    let file = json!({ "type": "file", "file": { "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE" } });
    let request = asking(vec![Message::new(Role::User, Content::Parts(vec![ContentPart::Other(file)]))]);
    assert_eq!(
        written(&request)["contents"][0]["parts"],
        json!([{ "inlineData": { "mimeType": "application/pdf", "data": "JVBE" } }])
    );
}

//! OpenAI's chat completions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hob_core::{Answer, FinishReason, Generation, Temperature, ToolDefinition, Usage};
use serde_json::json;

use super::*;

const MODEL: &str = "gpt-5.2";

#[tokio::test]
async fn a_question_is_answered() {
    let server = FakeServer::replying(Reply::json(
        200,
        r#"{"id":"chatcmpl-1","object":"chat.completion","created":1764547200,"model":"gpt-5.2-2026-01-01",
            "choices":[{"index":0,"message":{"role":"assistant","content":"Hello!","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],
            "usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12,"prompt_tokens_details":{"cached_tokens":4,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":2,"audio_tokens":0}},
            "service_tier":"default","system_fingerprint":null}"#,
    ))
    .await;
    let request = GenerateRequest {
        temperature: Some(Temperature::new(1.0).unwrap()),
        extra: serde_json::Map::from_iter([("reasoning_effort".to_owned(), json!("low"))]),
        ..hi(MODEL)
    };
    let expected = Generation {
        model: "gpt-5.2-2026-01-01".into(),
        answer: Answer {
            content: "Hello!".into(),
            reasoning: None,
            tool_calls: Vec::new(),
            finish_reason: FinishReason::Stop,
            sealed_reasoning: Vec::new(),
            later_thoughts: Vec::new(),
            logprobs: None,
        },
        alternatives: Vec::new(),
        usage: Some(Usage {
            prompt_tokens: 9,
            completion_tokens: 3,
            cached_tokens: Some(4),
            reasoning_tokens: Some(2),
            load_time: None,
        }),
        warnings: Vec::new(),
    };
    assert_eq!(cloud(&server).generate(&request).await.unwrap(), expected);
    assert_eq!(
        sent(&server),
        json!({
            "model": MODEL,
            "messages": [{ "role": "user", "content": "hi" }],
            "temperature": 1.0,
            "max_completion_tokens": 1024,
            "stream": false,
            "reasoning_effort": "low",
        })
    );
}

#[tokio::test]
async fn a_stream_is_complete_however_it_is_split_into_packets() {
    let body = concat!(
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}],\"usage\":null}\n\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Grüße 👋\"},\"finish_reason\":null}],\"usage\":null}\n\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":null}\n\n",
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":3}}\n\n",
        "data: [DONE]\n\n",
    );
    let server = FakeServer::replying(Reply::sse(body).in_packets_of(1)).await;
    let (deltas, error) = pieces(&cloud(&server), &hi(MODEL)).await;
    assert!(error.is_none(), "{error:?}");
    let usage = Usage {
        prompt_tokens: 9,
        completion_tokens: 3,
        cached_tokens: None,
        reasoning_tokens: None,
        load_time: None,
    };
    assert_eq!(
        deltas,
        [
            Delta::text("Grüße 👋"),
            Delta::Finish { choice: 0, reason: FinishReason::Stop },
            Delta::Done { usage: Some(usage) },
        ]
    );
}

#[tokio::test]
async fn a_refusal_keeps_its_status_and_is_not_asked_again_without_tools() {
    let refused = |status, message: &str| {
        Reply::json(
            status,
            json!({ "error": { "message": message, "type": "x", "param": null, "code": null } }).to_string(),
        )
    };
    assert_eq!(
        failure(MODEL, refused(401, "Incorrect API key provided")).await.0,
        "cloud (OpenAI) answered 401: Incorrect API key provided"
    );
    assert_eq!(
        failure(MODEL, refused(404, "The model `gpt-5.2` does not exist")).await.0,
        "cloud (OpenAI) has no model 'gpt-5.2'"
    );
    assert_eq!(
        failure(MODEL, refused(429, "Rate limit reached").header("retry-after", "7")).await,
        ("cloud (OpenAI) answered 429: Rate limit reached".to_owned(), Some(7))
    );

    let server = FakeServer::replying(refused(400, "Invalid schema for function 'weather'")).await;
    let request = GenerateRequest {
        tools: vec![ToolDefinition {
            name: "weather".into(),
            description: None,
            parameters: Some(json!({ "type": "nonsense" })),
            strict: None,
        }],
        ..hi(MODEL)
    };
    let error = cloud(&server).generate(&request).await.unwrap_err();
    assert!(matches!(error, EngineError::Refused { status: 400, .. }), "{error}");
    assert_eq!(server.requests().len(), 1);
}

fn noon() -> Reply {
    Reply::json(200, r#"{"choices":[{"index":0,"message":{"content":"Noon."},"finish_reason":"stop"}]}"#)
}

/// A service such as DeepSeek in the place of OpenAI: it refuses answers of the history without their reasoning.
async fn demanding() -> FakeServer {
    FakeServer::start(|request| {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let messages = body["messages"].as_array().unwrap();
        let is_missing =
            |message: &Value| message["role"] == "assistant" && message["reasoning_content"] == Value::Null;
        if messages.iter().any(is_missing) {
            let message = "The `reasoning_content` in the thinking mode must be passed back to the API.";
            return Reply::json(
                400,
                json!({ "error": { "message": message, "code": "invalid_request_error" } }).to_string(),
            );
        }
        noon()
    })
    .await
}

#[tokio::test]
async fn reasoning_is_sent_to_a_service_that_demands_it_and_remembered() {
    let server = demanding().await;
    let said = |reasoning: Option<&str>| Message {
        tool_calls: vec![call("c1", "now", "{}")],
        extra: reasoning.iter().map(|text| ("reasoning_content".to_owned(), json!(text))).collect(),
        ..Message::new(Role::Assistant, "")
    };
    let continued = |reasoning| GenerateRequest {
        messages: vec![
            Message::new(Role::User, "what time is it?"),
            said(reasoning),
            Message::tool_result("c1", "12:00"),
        ],
        ..hi("deepseek-v4-pro")
    };
    let cloud = cloud(&server);
    for (reasoning, sent_reasoning, requests) in [(Some("I must look."), "I must look.", 2), (None, " ", 1)] {
        server.forget();
        let generation = cloud.generate(&continued(reasoning)).await.unwrap();
        assert_eq!(generation.answer.content, "Noon.");
        assert_eq!(sent(&server)["messages"][1]["reasoning_content"], sent_reasoning);
        assert_eq!(server.requests().len(), requests, "{reasoning:?}");
    }
    // Other models of the service are asked without it, as most services refuse it.
    server.forget();
    cloud.generate(&GenerateRequest { model: "gpt-5.2".into(), ..continued(None) }).await.unwrap();
    assert_eq!(server.requests().len(), 2);
}

fn second_question(model: &str) -> GenerateRequest {
    let messages = vec![
        Message::new(Role::User, "hello"),
        Message::new(Role::Assistant, "hi"),
        Message::new(Role::User, "what time is it?"),
    ];
    GenerateRequest { messages, ..hi(model) }
}

#[tokio::test]
async fn a_refusal_that_quotes_a_caller_is_not_remembered_as_a_demand() {
    let server = FakeServer::start(|request| {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let refused =
            |message: &str| Reply::json(400, json!({ "error": { "message": message } }).to_string());
        if body["tools"] != Value::Null {
            return refused("Invalid schema for function 'reasoning_content_is_missing'");
        }
        if body["messages"][1]["reasoning_content"] != Value::Null {
            return refused("Unknown parameter: 'messages[1].reasoning_content'");
        }
        noon()
    })
    .await;
    let cloud = cloud(&server);
    let continued = second_question("gpt-5.2");
    let tool = ToolDefinition {
        name: "reasoning_content_is_missing".into(),
        description: None,
        parameters: Some(json!({ "type": "array" })),
        strict: None,
    };
    let hostile = GenerateRequest { tools: vec![tool], ..continued.clone() };
    let error = cloud.generate(&hostile).await.unwrap_err();
    assert!(error.to_string().contains("Invalid schema"), "{error}");
    server.forget();
    cloud.generate(&continued).await.unwrap();
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_service_that_no_longer_takes_reasoning_is_asked_without_it_again() {
    let has_changed = Arc::new(AtomicBool::new(false));
    let changed = Arc::clone(&has_changed);
    let server = FakeServer::start(move |request| {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let has_reasoning = body["messages"][1]["reasoning_content"] != Value::Null;
        if has_reasoning == changed.load(Ordering::Relaxed) {
            let (status, message) =
                if has_reasoning { (422, "unknown field") } else { (400, "reasoning_content is missing") };
            return Reply::json(status, json!({ "error": { "message": message } }).to_string());
        }
        noon()
    })
    .await;
    let cloud = cloud(&server);
    let continued = second_question("kimi");
    for (is_changed, requests) in [(false, 2), (false, 1), (true, 2), (true, 1)] {
        has_changed.store(is_changed, Ordering::Relaxed);
        server.forget();
        cloud.generate(&continued).await.unwrap();
        assert_eq!(server.requests().len(), requests, "{is_changed}");
    }
}

#[tokio::test]
async fn a_service_that_fails_with_the_reasoning_that_it_demanded_reports_that_failure() {
    let server = FakeServer::start(|request| {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let (status, message) = match body["messages"][1]["reasoning_content"] {
            Value::Null => (400, "reasoning_content is missing"),
            _ => (429, "too many requests"),
        };
        Reply::json(status, json!({ "error": { "message": message } }).to_string())
    })
    .await;
    let error = cloud(&server).generate(&second_question("kimi")).await.unwrap_err();
    assert!(matches!(error, EngineError::Refused { status: 429, .. }), "{error}");
    assert_eq!(server.requests().len(), 2);
}

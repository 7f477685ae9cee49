//! OpenAI's chat completions.

use hob_core::{Answer, FinishReason, Generation, Temperature, Usage};
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
        tools: vec![hob_core::ToolDefinition {
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

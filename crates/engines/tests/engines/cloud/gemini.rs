//! Google's generateContent.

use hob_core::{Answer, Content, FinishReason, Generation, Usage};
use serde_json::json;

use super::*;

const MODEL: &str = "gemini-3.1-pro";

fn sse(chunks: &[Value]) -> String {
    // Google ends its lines with a carriage return.
    chunks.iter().map(|chunk| format!("data: {chunk}\r\n\r\n")).collect()
}

fn chunk(parts: Value) -> Value {
    json!({
        "candidates": [{ "content": { "parts": parts, "role": "model" }, "index": 0 }],
        "usageMetadata": { "promptTokenCount": 4, "totalTokenCount": 4 },
        "modelVersion": MODEL,
        "responseId": "r1",
    })
}

fn last(parts: Value, reason: &str) -> Value {
    let mut chunk = chunk(parts);
    chunk["candidates"][0]["finishReason"] = json!(reason);
    chunk["usageMetadata"] = json!({ "promptTokenCount": 4, "candidatesTokenCount": 2, "thoughtsTokenCount": 5, "totalTokenCount": 11 });
    chunk
}

fn finish(reason: FinishReason) -> Delta {
    Delta::Finish { choice: 0, reason }
}

const USAGE: Usage = Usage {
    prompt_tokens: 4,
    completion_tokens: 7,
    cached_tokens: None,
    reasoning_tokens: Some(5),
    load_time: None,
};

#[tokio::test]
async fn a_signed_call_comes_back_to_google_with_its_signature() {
    let parts = json!([{
        "functionCall": { "name": "weather", "args": { "city": "Rome" } },
        "thoughtSignature": "CvQB+/o=",
    }]);
    let server = FakeServer::replying(Reply::json(200, last(parts, "STOP").to_string())).await;
    let cloud = cloud(&server);
    let question = Message::new(Role::User, "weather in Rome?");
    let request =
        GenerateRequest { messages: vec![Message::new(Role::System, "Be kind."), question], ..hi(MODEL) };
    let generation = cloud.generate(&request).await.unwrap();
    let calls = generation.answer.tool_calls.clone();
    let expected = Generation {
        model: MODEL.into(),
        answer: Answer {
            content: String::new(),
            reasoning: None,
            tool_calls: vec![call(&calls[0].id, "weather", "{\"city\":\"Rome\"}")],
            finish_reason: FinishReason::ToolCalls,
            sealed_reasoning: Vec::new(),
            later_thoughts: Vec::new(),
            logprobs: None,
        },
        alternatives: Vec::new(),
        usage: Some(USAGE),
        warnings: Vec::new(),
    };
    assert_eq!(generation, expected);

    let mut messages = request.messages.clone();
    messages.push(Message {
        content: Content::Empty,
        tool_calls: calls.clone(),
        ..Message::new(Role::Assistant, "")
    });
    messages.push(Message::tool_result(calls[0].id.clone(), "11 degrees"));
    let follow_up = GenerateRequest { messages, ..request };
    cloud.generate(&follow_up).await.unwrap();
    let body = sent(&server);
    let id = body["contents"][1]["parts"][0]["functionCall"]["id"].clone();
    assert_eq!(
        body,
        json!({
            "systemInstruction": { "parts": [{ "text": "Be kind." }] },
            "contents": [
                { "role": "user", "parts": [{ "text": "weather in Rome?" }] },
                { "role": "model", "parts": [{
                    "functionCall": { "id": id, "name": "weather", "args": { "city": "Rome" } },
                    "thoughtSignature": "CvQB+/o=",
                }] },
                { "role": "user", "parts": [
                    { "functionResponse": { "id": id, "name": "weather", "response": { "result": "11 degrees" } } },
                ] },
            ],
            "generationConfig": { "maxOutputTokens": 1024 },
        })
    );
}

#[tokio::test]
async fn a_stream_is_complete_however_it_is_split_into_packets() {
    let body = format!(
        ": keep-alive\n\n{}",
        sse(&[
            chunk(json!([{ "text": "Let me think.", "thought": true }])),
            chunk(json!([{ "text": "Grüße " }])),
            chunk(json!([{ "text": "👋" }])),
            chunk(json!([{ "functionCall": { "id": "fc-1", "name": "now", "args": {} } }])),
            last(json!([{ "text": "" }]), "STOP"),
        ])
    );
    let server = FakeServer::replying(Reply::sse(body).in_packets_of(1)).await;
    let (deltas, error) = pieces(&cloud(&server), &hi(MODEL)).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!(
        deltas,
        [
            Delta::Reasoning { choice: 0, text: "Let me think.".into() },
            Delta::text("Grüße "),
            Delta::text("👋"),
            call_piece(0, Some("fc-1"), Some("now"), "{}"),
            finish(FinishReason::ToolCalls),
            Delta::Done { usage: Some(USAGE) },
        ]
    );
    assert_eq!(server.requests()[0].path, "/v1beta/models/gemini-3.1-pro:streamGenerateContent?alt=sse");
}

#[tokio::test]
async fn an_error_in_the_middle_breaks_the_answer_and_never_looks_complete() {
    let trouble =
        json!({ "error": { "code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE" } });
    let body = sse(&[chunk(json!([{ "text": "half" }])), trouble.clone(), last(json!([]), "STOP")]);
    let server = FakeServer::replying(Reply::sse(body)).await;
    let (deltas, error) = pieces(&cloud(&server), &hi(MODEL)).await;
    assert_eq!(deltas, [Delta::text("half")]);
    assert_eq!(
        error.map(|error| error.to_string()).as_deref(),
        Some("cloud (Gemini) answered 503: The model is overloaded.")
    );

    let server = FakeServer::replying(Reply::sse(sse(&[trouble]))).await;
    let (_, error) = pieces(&cloud(&server), &hi(MODEL)).await;
    assert!(matches!(error, Some(EngineError::Refused { status: 503, .. })), "{error:?}");
}

#[tokio::test]
async fn a_connection_that_is_cut_never_looks_complete() {
    let half = chunk(json!([{ "text": "half" }]));
    let finished = sse(&[half.clone(), last(json!([]), "STOP")]);
    for reply in [
        Reply::sse(sse(std::slice::from_ref(&half))).then_cut(),
        Reply::sse(sse(&[half])),
        Reply::sse(finished.clone()).then_cut(),
        Reply::sse(finished[..finished.len() - 20].to_owned()),
    ] {
        let server = FakeServer::replying(reply).await;
        let (deltas, error) = pieces(&cloud(&server), &hi(MODEL)).await;
        assert_eq!(deltas, [Delta::text("half")]);
        assert!(matches!(error, Some(EngineError::Interrupted { .. })), "{error:?}");
    }
}

#[tokio::test]
async fn a_blocked_prompt_is_refused_with_its_reason() {
    let blocked = json!({ "promptFeedback": { "blockReason": "PROHIBITED_CONTENT" }, "modelVersion": MODEL });
    let message = "cloud (Gemini) answered 400: the prompt was blocked (PROHIBITED_CONTENT)";
    assert_eq!(failure(MODEL, Reply::json(200, blocked.to_string())).await.0, message);

    let server = FakeServer::replying(Reply::sse(sse(&[blocked]))).await;
    let (_, error) = pieces(&cloud(&server), &hi(MODEL)).await;
    assert_eq!(error.map(|error| error.to_string()).as_deref(), Some(message));
}

#[tokio::test]
async fn an_answer_without_candidates_is_an_error() {
    assert_eq!(
        failure(MODEL, Reply::json(200, r#"{"candidates":[]}"#)).await.0,
        "cloud (Gemini) gave an answer that cannot be read: no candidate has a finish reason"
    );
}

#[tokio::test]
async fn errors_keep_their_status_and_text() {
    let refused = |status: u16, message: &str, details: Value| {
        Reply::json(
            status,
            json!({ "error": { "code": status, "message": message, "status": "X", "details": details } })
                .to_string(),
        )
    };
    assert_eq!(
        failure(MODEL, refused(400, "API key not valid.", json!([]))).await.0,
        "cloud (Gemini) answered 400: API key not valid."
    );
    assert_eq!(
        failure(MODEL, refused(404, "models/gemini-3.1-pro is not found for API version v1beta", json!([])))
            .await
            .0,
        "cloud (Gemini) has no model 'gemini-3.1-pro'"
    );
    let details = json!([{ "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "39s" }]);
    assert_eq!(
        failure(MODEL, refused(429, "You exceeded your quota.", details)).await,
        ("cloud (Gemini) answered 429: You exceeded your quota.".to_owned(), Some(39))
    );
    assert_eq!(
        failure(MODEL, refused(500, "An internal error has occurred.", json!([]))).await.0,
        "cloud (Gemini) answered 500: An internal error has occurred."
    );
}

#[tokio::test]
async fn a_hostile_model_name_cannot_change_the_path() {
    let server = FakeServer::replying(Reply::json(404, r#"{"error":{"message":"no such model"}}"#)).await;
    let hostile = "gemini/../../files?key=stolen#";
    let error = cloud(&server).generate(&hi(hostile)).await.unwrap_err();
    assert!(matches!(error, EngineError::ModelNotFound { .. }), "{error}");
    assert_eq!(
        server.requests()[0].path,
        "/v1beta/models/gemini%2F..%2F..%2Ffiles%3Fkey%3Dstolen%23:generateContent"
    );
}

//! Answers that are cut off, break or are too long, and servers without a store.

use std::sync::Arc;

use hob_core::{Delta, EngineError, FinishReason};
use hob_engines::Style;
use hob_testkit::{FakeServer, Reply, ScriptedEngine};
use serde_json::{Value, json};

use super::{
    StoringServer, asking, error_of, events_of, finish, giving, json_of, last_messages, types_of, warnings_of,
};
use crate::client::chunk;
use crate::fixtures::usage;
use crate::support::{TestServer, WAIT_LIMIT, engine_at, models};

#[tokio::test]
async fn an_answer_that_is_cut_off_is_incomplete_in_both_forms() {
    let server =
        StoringServer::start(giving(vec![Delta::text("Hel"), finish(FinishReason::Length), usage(3, 1)]))
            .await;
    let whole = server.created(json!({ "max_output_tokens": 1 })).await;
    assert_eq!(
        [&whole["status"], &whole["incomplete_details"], &whole["output"][0]["status"]],
        [&json!("incomplete"), &json!({ "reason": "max_output_tokens" }), &json!("incomplete")]
    );
    let streamed = server.create(json!({ "stream": true })).await;
    let events = events_of(&streamed.text().await.unwrap());
    assert_eq!(types_of(&events).last(), Some(&"response.incomplete"));
}

#[tokio::test]
async fn a_stream_that_breaks_ends_with_response_failed() {
    let broken = || EngineError::Interrupted { engine: "scripted".into(), reason: "cable".into() };
    let engine = Arc::new(ScriptedEngine::new(move |_| vec![Ok(Delta::text("Hel")), Err(broken())]));
    let server = StoringServer::start(engine).await;
    let response = server.create(json!({ "stream": true })).await;
    assert_eq!(response.status(), 200);
    let events = events_of(&response.text().await.unwrap());
    assert_eq!(types_of(&events)[4..], ["response.output_text.delta", "response.failed"]);
    let failed = &events[5]["response"];
    assert_eq!(
        [&failed["status"], &failed["error"]],
        [
            &json!("failed"),
            &json!({ "code": "server_error", "message": "scripted broke off its answer: cable" }),
        ]
    );
    let path = format!("/v1/responses/{}", failed["id"].as_str().unwrap());
    assert_eq!(server.get(&path).await, *failed);
}

#[tokio::test]
async fn an_engine_that_fails_before_its_answer_is_an_http_error() {
    let engine = Arc::new(ScriptedEngine::saying(&["Hello"]));
    engine.set_gone(true);
    let server = StoringServer::start(engine).await;
    for stream in [false, true] {
        let response = server.create(json!({ "stream": stream })).await;
        assert_eq!(error_of(response).await, (502, Value::Null, json!("engine_unreachable")));
    }
}

/// What vLLM says of a conversation that is too long.
pub fn too_long() -> EngineError {
    EngineError::Refused {
        engine: "scripted".into(),
        status: 400,
        message: "This model's maximum context length is 100 tokens. However, you requested 250 tokens"
            .into(),
        code: None,
        param: None,
        retry_after: None,
    }
}

#[tokio::test]
async fn a_conversation_that_is_too_long_is_an_error_or_loses_its_beginning() {
    let engine = Arc::new(ScriptedEngine::new(|request| {
        let length: usize = request.messages.iter().map(|message| message.content.text().len()).sum();
        match length > 100 {
            true => vec![Err(too_long())],
            false => {
                vec![Ok(Delta::text("ok")), Ok(finish(FinishReason::Stop)), Ok(Delta::Done { usage: None })]
            }
        }
    }));
    let server = StoringServer::start(engine.clone()).await;
    let long = "x".repeat(60);
    let input = json!([
        { "role": "developer", "content": "rules" },
        { "role": "user", "content": long },
        { "role": "assistant", "content": long },
        { "role": "user", "content": "last" },
    ]);
    for stream in [false, true] {
        let refused = server.create(json!({ "input": input, "stream": stream })).await;
        match stream {
            false => {
                assert_eq!(error_of(refused).await, (400, json!("input"), json!("context_length_exceeded")));
            }
            // Codex makes the conversation shorter only after this event.
            true => {
                assert_eq!(refused.status(), 200);
                let events = events_of(&refused.text().await.unwrap());
                let types = ["response.created", "response.in_progress", "response.failed"];
                assert_eq!(types_of(&events), types);
                let failed = &events[2]["response"];
                assert_eq!(failed["error"]["code"], "context_length_exceeded");
                let path = format!("/v1/responses/{}", failed["id"].as_str().unwrap());
                assert_eq!(server.get(&path).await, *failed);
            }
        }
        let response = server.create(json!({ "input": input, "truncation": "auto", "stream": stream })).await;
        assert_eq!(response.status(), 200);
        assert_eq!(warnings_of(&response), ["ignored=input[0]"]);
        let body = response.text().await.unwrap();
        assert!(body.contains("\"text\":\"ok\""), "{body}");
        assert_eq!(
            last_messages(&engine).first().map(|message| message.content.text().into_owned()),
            Some("rules".to_owned())
        );
        assert_eq!(
            last_messages(&engine).last().map(|message| message.content.text().into_owned()),
            Some("last".to_owned())
        );
    }
    let alone = server.create(json!({ "input": "x".repeat(200), "truncation": "auto" })).await;
    assert_eq!(error_of(alone).await, (400, json!("input"), json!("context_length_exceeded")));
}

#[tokio::test]
async fn an_engine_without_effort_answers_all_the_same() {
    let engine = Arc::new(ScriptedEngine::saying(&["Hello"]));
    let server = StoringServer::start(engine.clone()).await;
    for stream in [false, true] {
        let response = server.create(json!({ "reasoning": { "effort": "high" }, "stream": stream })).await;
        assert_eq!(response.status(), 200);
        assert_eq!(warnings_of(&response), ["ignored=reasoning_effort"]);
    }
    // Without 'max_output_tokens' an answer has no limit.
    assert_eq!(engine.requests()[0].max_tokens(), None);
}

#[tokio::test]
async fn hanging_up_on_a_stream_ends_the_engines_request() {
    let fake = FakeServer::start(|request| match request.method.as_str() {
        "GET" => models(),
        _ => Reply::sse(chunk(r#"{"content":"hi"}"#)).then_silence(),
    })
    .await;
    let server = StoringServer::start(engine_at(&fake, Style::VLLM)).await;
    let mut response = server.create(json!({ "stream": true })).await;
    response.chunk().await.unwrap().expect("the stream has begun");
    drop(response);
    tokio::time::timeout(WAIT_LIMIT, fake.hung_up(1)).await.expect("the engine's request ends");
}

#[tokio::test]
async fn a_server_without_a_store_answers_and_says_that_it_stores_nothing() {
    let server = TestServer::start(Arc::new(ScriptedEngine::saying(&["Hello"]))).await;
    let post = |body: Value| server.client.post(server.url("/v1/responses")).json(&body).send();
    let response = post(asking(json!({}))).await.unwrap();
    assert_eq!(warnings_of(&response), ["ignored=store"]);
    let body = json_of(response).await;
    assert_eq!(body["store"], false);
    for fields in [json!({ "previous_response_id": body["id"] }), json!({ "background": true })] {
        let response = post(asking(fields)).await.unwrap();
        assert_eq!(error_of(response).await, (503, Value::Null, json!("no_response_store")));
    }
}

//! Responses in the background: polled, followed, cancelled down to the engine, and ended by a restart.

use std::sync::Arc;

use hob_core::{Delta, EngineError};
use hob_engines::Style;
use hob_testkit::{FakeServer, Hold, Reply, ScriptedEngine};
use reqwest::Method;
use serde_json::{Value, json};

use super::{StoringServer, error_of, events_of, json_of, types_of};
use crate::client::chunk;
use crate::support::{FINISH, WAIT_LIMIT, engine_at, models};

/// Reads a response until it has this status.
async fn until(server: &StoringServer, path: &str, status: &str) -> Value {
    let reading = async {
        loop {
            let response = server.get(path).await;
            if response["status"] == status {
                return response;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(WAIT_LIMIT, reading).await.unwrap_or_else(|_| panic!("never {status}"))
}

/// An engine that says "hi", and finishes when the test lets it.
pub async fn held_engine(hold: &Hold) -> FakeServer {
    let hold = hold.clone();
    FakeServer::start(move |request| match request.method.as_str() {
        "GET" => models(),
        _ if request.text().contains("\"stream\":true") => {
            Reply::sse(chunk(r#"{"content":"hi"}"#)).then_held(&hold, FINISH)
        }
        _ => Reply::json(200, "").then_held(
            &hold,
            r#"{"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}"#,
        ),
    })
    .await
}

fn path_of(response: &Value) -> String {
    format!("/v1/responses/{}", response["id"].as_str().unwrap())
}

#[tokio::test]
async fn a_response_in_the_background_is_polled_until_it_is_complete() {
    let hold = Hold::new();
    let fake = held_engine(&hold).await;
    let server = StoringServer::start(engine_at(&fake, Style::VLLM)).await;
    let queued = server.created(json!({ "background": true })).await;
    assert_eq!(
        [&queued["status"], &queued["background"], &queued["output"], &queued["usage"]],
        [&json!("queued"), &json!(true), &json!([]), &Value::Null]
    );
    let path = path_of(&queued);
    until(&server, &path, "in_progress").await;
    let early = server.create(json!({ "previous_response_id": queued["id"] })).await;
    assert_eq!(error_of(early).await, (400, json!("previous_response_id"), Value::Null));
    hold.release();
    let completed = until(&server, &path, "completed").await;
    assert_eq!(completed["output"][0]["content"][0]["text"], "hi");
    assert_eq!(completed["id"], queued["id"]);
    let cancelled = json_of(server.ask(Method::POST, &format!("{path}/cancel")).await).await;
    assert_eq!(cancelled, completed, "it is too late to cancel");
    let stream = error_of(server.ask(Method::GET, &format!("{path}?stream=true")).await).await;
    assert_eq!(stream, (400, json!("stream"), json!("no_events")));
}

#[tokio::test]
async fn its_events_are_followed_from_any_point() {
    let hold = Hold::new();
    let fake = held_engine(&hold).await;
    let server = StoringServer::start(engine_at(&fake, Style::VLLM)).await;
    let mut first = server.create(json!({ "background": true, "stream": true })).await;
    let mut begun = String::new();
    while !begun.contains("response.output_text.delta") {
        begun.push_str(std::str::from_utf8(&first.chunk().await.unwrap().unwrap()).unwrap());
    }
    // Its client disconnects, and the response continues.
    drop(first);
    let path = path_of(&events_of(&begun)[0]["response"]);
    let second = server.ask(Method::GET, &format!("{path}?stream=true&starting_after=1")).await;
    assert_eq!(second.headers()["content-type"], "text/event-stream");
    hold.release();
    let rest = events_of(&second.text().await.unwrap());
    assert_eq!(
        types_of(&rest),
        [
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    let numbers: Vec<u64> = rest.iter().map(|event| event["sequence_number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (2..10).collect::<Vec<_>>());
    assert_eq!(server.get(&path).await, rest[7]["response"]);
    let all = server.ask(Method::GET, &format!("{path}?stream=true")).await.text().await.unwrap();
    let all = events_of(&all);
    assert_eq!(types_of(&all)[..3], ["response.created", "response.queued", "response.in_progress"]);
    assert_eq!(all[0]["response"]["status"], "queued");
    assert_eq!(all[2..], rest);
    let after_the_end = server.ask(Method::GET, &format!("{path}?stream=true&starting_after=9")).await;
    assert_eq!(after_the_end.text().await.unwrap(), "");
    let wrong = server.ask(Method::GET, &format!("{path}?stream=true&starting_after=x")).await;
    assert_eq!(error_of(wrong).await, (400, json!("starting_after"), Value::Null));
}

#[tokio::test]
async fn cancelling_ends_the_engines_request() {
    for stream in [false, true] {
        let fake = FakeServer::start(|request| match request.method.as_str() {
            "GET" => models(),
            _ if request.text().contains("\"stream\":true") => {
                Reply::sse(chunk(r#"{"content":"hi"}"#)).then_silence()
            }
            _ => Reply::silence(),
        })
        .await;
        let server = StoringServer::start(engine_at(&fake, Style::VLLM)).await;
        let mut begun = server.create(json!({ "background": true, "stream": stream })).await;
        let first = begun.chunk().await.unwrap().unwrap();
        let first = std::str::from_utf8(&first).unwrap();
        let response = match stream {
            true => events_of(first)[0]["response"].clone(),
            false => serde_json::from_str(first).unwrap(),
        };
        let path = path_of(&response);
        // The engine has been asked.
        let asked = async {
            while fake.requests().iter().all(|request| request.method == "GET") {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(WAIT_LIMIT, asked).await.unwrap();
        let cancelled = json_of(server.ask(Method::POST, &format!("{path}/cancel")).await).await;
        assert_eq!(cancelled["status"], "cancelled");
        tokio::time::timeout(WAIT_LIMIT, fake.hung_up(1)).await.expect("the engine's request ends");
        assert_eq!(server.get(&path).await, cancelled);
        if stream {
            let rest = begun.text().await.unwrap();
            assert!(
                rest.contains("event: error\ndata: {\"type\":\"error\",\"code\":\"response_cancelled\""),
                "{rest}"
            );
            assert!(!rest.contains("response.completed"));
        }
    }
}

#[tokio::test]
async fn a_run_that_fails_says_why() {
    let broken = || EngineError::Interrupted { engine: "scripted".into(), reason: "cable".into() };
    let engine = Arc::new(ScriptedEngine::new(move |_| vec![Ok(Delta::text("Hel")), Err(broken())]));
    let server = StoringServer::start(engine).await;
    for stream in [false, true] {
        let response = server.create(json!({ "background": true, "stream": stream })).await;
        let text = response.text().await.unwrap();
        let id = match stream {
            true => {
                let events = events_of(&text);
                assert_eq!(types_of(&events).last(), Some(&"response.failed"));
                events[0]["response"]["id"].clone()
            }
            false => serde_json::from_str::<Value>(&text).unwrap()["id"].clone(),
        };
        let failed = until(&server, &format!("/v1/responses/{}", id.as_str().unwrap()), "failed").await;
        assert_eq!(
            failed["error"],
            json!({ "code": "server_error", "message": "scripted broke off its answer: cable" })
        );
    }
}

#[tokio::test]
async fn deleting_a_run_ends_it() {
    let fake = FakeServer::start(|request| match request.method.as_str() {
        "GET" => models(),
        _ => Reply::silence(),
    })
    .await;
    let server = StoringServer::start(engine_at(&fake, Style::VLLM)).await;
    let queued = server.created(json!({ "background": true })).await;
    let path = path_of(&queued);
    let asked = async {
        while fake.requests().iter().all(|request| request.method == "GET") {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(WAIT_LIMIT, asked).await.unwrap();
    json_of(server.ask(Method::DELETE, &path).await).await;
    tokio::time::timeout(WAIT_LIMIT, fake.hung_up(1)).await.expect("the engine's request ends");
    let gone = error_of(server.ask(Method::GET, &path).await).await;
    assert_eq!(gone, (404, json!("response_id"), json!("response_not_found")));
}

#[tokio::test]
async fn a_server_that_stops_ends_what_does_not_end_by_itself() {
    let fake = FakeServer::start(|request| match request.method.as_str() {
        "GET" => models(),
        _ => Reply::silence(),
    })
    .await;
    let server =
        StoringServer::start_with_grace(engine_at(&fake, Style::VLLM), std::time::Duration::ZERO).await;
    let queued = server.created(json!({ "background": true })).await;
    let server = server.restart(Arc::new(ScriptedEngine::saying(&["Hello"]))).await;
    let failed = server.get(&path_of(&queued)).await;
    assert_eq!([&failed["status"], &failed["error"]["code"]], [&json!("failed"), &json!("server_error")]);
}

#[tokio::test]
async fn so_many_run_in_the_background_and_no_more() {
    let fake = FakeServer::start(|request| match request.method.as_str() {
        "GET" => models(),
        _ => Reply::silence(),
    })
    .await;
    let server =
        StoringServer::start_with_grace(engine_at(&fake, Style::VLLM), std::time::Duration::ZERO).await;
    for _ in 0..32 {
        server.created(json!({ "background": true })).await;
    }
    let refused = server.create(json!({ "background": true })).await;
    assert!(refused.headers().contains_key("retry-after"));
    assert_eq!(error_of(refused).await, (429, Value::Null, json!("rate_limit_exceeded")));
    server.server.stop().await;
}

#[tokio::test]
async fn what_had_no_effect_is_in_the_response() {
    let engine = Arc::new(ScriptedEngine::new(|request| {
        let deltas = match request.messages.len() > 1 {
            true => return vec![Err(super::failures::too_long())],
            false => vec![Delta::text("ok"), super::finish(hob_core::FinishReason::Stop)],
        };
        deltas.into_iter().chain([Delta::Done { usage: None }]).map(Ok).collect()
    }));
    let server = StoringServer::start(engine).await;
    let input = json!([
        { "role": "user", "content": "first" },
        { "role": "assistant", "content": "answer" },
        { "role": "user", "content": "last" },
    ]);
    for stream in [false, true] {
        let fields =
            json!({ "background": true, "truncation": "auto", "stream": stream, "input": input, "seed": 1 });
        let begun = server.create(fields).await;
        assert_eq!(super::warnings_of(&begun), ["ignored=seed"]);
        let text = begun.text().await.unwrap();
        let begun = match stream {
            true => events_of(&text)[0]["response"].clone(),
            false => serde_json::from_str(&text).unwrap(),
        };
        assert_eq!(begun["hob_warnings"], Value::Null);
        let completed = until(&server, &path_of(&begun), "completed").await;
        assert_eq!(completed["hob_warnings"], json!(["ignored=seed", "ignored=input[0]"]));
    }
}

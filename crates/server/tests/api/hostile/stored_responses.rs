//! Stored responses, conversations and runs in the background.

use std::sync::{Arc, mpsc};
use std::time::{Duration, SystemTime};

use hob_app::hob_database;
use hob_config::ServerConfig;
use hob_conversations::{ResponseOwner, StoredResponse};
use hob_core::{Message, Role};
use hob_engines::Style;
use hob_testkit::{FakeServer, Hold, Reply, ScriptedEngine};
use reqwest::Method;
use serde_json::{Value, json};

use crate::client::{RawConnection, chunk};
use crate::fixtures::loopback_config;
use crate::responses::{StoringServer, error_of, json_of, last_messages, warnings_of};
use crate::support::{FINISH, WAIT_LIMIT, engine_at, models};

fn hello() -> Arc<ScriptedEngine> {
    Arc::new(ScriptedEngine::saying(&["Hello"]))
}

fn references(id: &str, count: usize) -> Vec<Value> {
    (0..count).map(|_| json!({ "type": "item_reference", "id": id })).collect()
}

#[tokio::test]
async fn a_thousand_references_to_an_item_are_one_item() {
    let engine = hello();
    let server = StoringServer::start(engine.clone()).await;
    let large = "x".repeat(10_000);
    let items = json!([{ "role": "user", "content": large, "id": "msg_large" }]);
    let conversation = json_of(server.post("/v1/conversations", &json!({ "items": items })).await).await;
    let fields = json!({ "conversation": conversation["id"], "input": references("msg_large", 1_000) });
    server.created(fields).await;
    assert_eq!(last_messages(&engine), [Message::new(Role::User, large.clone())]);
    // Also those that are not part of the conversation.
    let response = server.created(json!({ "input": large })).await;
    let suffix = response["id"].as_str().unwrap().strip_prefix("resp_").unwrap();
    server.created(json!({ "input": references(&format!("msg_{suffix}i0"), 1_000) })).await;
    assert_eq!(last_messages(&engine), [Message::new(Role::User, large)]);
    let many =
        server.create(json!({ "conversation": conversation["id"], "input": references("x", 20_001) })).await;
    assert_eq!((error_of(many).await.1, last_messages(&engine).len()), (json!("input"), 1));
}

/// A response of the owner, as it is stored.
fn store_response(server: &StoringServer, id: &str, input: &str, body: Value) {
    let response = StoredResponse {
        id: id.to_owned(),
        previous: None,
        body: body.to_string(),
        input: input.to_owned(),
        lease: None,
    };
    server.store.save(&ResponseOwner::owner(), &response, None, SystemTime::now()).unwrap();
}

#[tokio::test]
async fn large_responses_that_requests_continue_share_the_memory_of_bodies() {
    let hold = Hold::new();
    let pause = hold.clone();
    let fake = FakeServer::start(move |request| match request.method.as_str() {
        "GET" => models(),
        _ => Reply::sse(chunk(r#"{"content":"hi"}"#)).then_held(&pause, FINISH),
    })
    .await;
    let config = ServerConfig {
        max_body_mb: 2,
        queue_timeout: Duration::from_millis(20),
        max_in_flight: 100,
        ..loopback_config()
    };
    let home = tempfile::tempdir().unwrap();
    let server = StoringServer::start_on(home, engine_at(&fake, Style::VLLM), config).await;
    let item = json!({ "role": "user", "content": "x".repeat(3 << 19) });
    store_response(&server, "resp_large", &json!([item]).to_string(), json!({ "output": [] }));
    let mut answers = Vec::new();
    let refused = loop {
        let fields = json!({ "previous_response_id": "resp_large", "stream": true, "store": false });
        let response = server.create(fields).await;
        if response.status() != 200 {
            break response;
        }
        answers.push(response);
        // There is room for 16 bodies of 2 MiB.
        assert!(answers.len() * 3 / 2 <= 32, "nothing is counted");
    };
    assert_eq!(refused.status(), 503);
    assert_eq!(server.create(json!({ "store": false, "stream": true })).await.status(), 200, "a small one");
    hold.release();
}

#[tokio::test]
async fn stored_items_of_too_many_values_are_not_continued() {
    let server = StoringServer::start(hello()).await;
    for number in 0..5 {
        let item = json!({ "id": format!("msg_{number:024}i0"), "role": "user", "content": vec![0; 90_000] });
        let id = format!("resp_{number:024}");
        store_response(&server, &id, &json!([item]).to_string(), json!({ "output": [] }));
    }
    let input: Vec<Value> = (0..5)
        .map(|number| json!({ "type": "item_reference", "id": format!("msg_{number:024}i0") }))
        .collect();
    let response = server.create(json!({ "input": input, "store": false })).await;
    assert_eq!(response.status(), 400);
    let refused: Value = response.json().await.unwrap();
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.ends_with("too many JSON values; the limit is 400,000"), "{message}");
}

#[tokio::test]
async fn references_to_many_large_responses_are_refused() {
    let server = StoringServer::start(hello()).await;
    let suffix = |number: usize| format!("{number:024}");
    let mut input = Vec::new();
    for number in 0..6 {
        let item = json!({ "id": format!("msg_{}i0", suffix(number)), "role": "user", "content": "x".repeat(15 << 20) });
        store_response(
            &server,
            &format!("resp_{}", suffix(number)),
            &json!([item]).to_string(),
            json!({ "output": [] }),
        );
        input.push(json!({ "type": "item_reference", "id": item["id"] }));
    }
    let refused = server.create(json!({ "input": input, "store": false })).await;
    assert_eq!(error_of(refused).await, (400, json!("input"), Value::Null));
}

#[tokio::test]
async fn twenty_thousand_messages_in_a_row_are_joined_in_no_time() {
    let engine = hello();
    // On a busy machine, a body of 60 MB takes longer than the usual pause.
    let config = ServerConfig { body_timeout: WAIT_LIMIT, ..loopback_config() };
    let server = StoringServer::start_on(tempfile::tempdir().unwrap(), engine.clone(), config).await;
    let text = "x".repeat(3_000);
    for role in ["user", "assistant"] {
        let mut input =
            vec![json!({ "type": "function_call", "call_id": "c", "name": "f", "arguments": "{}" })];
        input.extend((0..19_998).map(|_| json!({ "role": role, "content": text })));
        input.push(json!({ "type": "function_call_output", "call_id": "c", "output": "" }));
        let asked = server.create(json!({ "input": input, "store": false }));
        let response = tokio::time::timeout(WAIT_LIMIT, asked).await.expect("it is joined in place");
        assert_eq!(response.status(), 200);
        let longest = last_messages(&engine).iter().map(|message| message.content.text().len()).max();
        assert!(longest.unwrap() > 19_998 * text.len());
    }
}

#[tokio::test]
async fn large_echoed_fields_are_not_stored_either() {
    let server = StoringServer::start(hello()).await;
    let instructions = "x".repeat(17 << 20);
    let response = server.create(json!({ "instructions": instructions })).await;
    assert_eq!(warnings_of(&response), ["ignored=store"]);
    assert_eq!(json_of(response).await["store"], false);
    let refused = server.create(json!({ "instructions": instructions, "background": true })).await;
    assert_eq!(error_of(refused).await, (400, json!("input"), Value::Null));
}

/// Waits until this many requests run.
async fn until_in_flight(server: &StoringServer, count: usize) {
    let wanted = format!("hob_requests_in_flight {count}\n");
    let waiting = async {
        loop {
            let metrics = server.ask(Method::GET, "/metrics").await.text().await.unwrap();
            if metrics.contains(&wanted) {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(WAIT_LIMIT, waiting).await.unwrap_or_else(|_| panic!("never {wanted}"));
}

#[tokio::test]
async fn clients_that_leave_while_a_run_begins_leave_no_run_behind() {
    let fake = FakeServer::start(|request| match request.method.as_str() {
        "GET" => models(),
        _ => Reply::silence(),
    })
    .await;
    let home = tempfile::tempdir().unwrap();
    let config = ServerConfig { shutdown_grace: Duration::ZERO, ..loopback_config() };
    let server = StoringServer::start_on(home, engine_at(&fake, Style::VLLM), config).await;
    // The database exists, and another process writes to it.
    json_of(server.post("/v1/conversations", &json!({})).await).await;
    let database = hob_database(server.home.path());
    let (release, released) = mpsc::channel::<()>();
    let (hold, held) = mpsc::channel();
    let writer = std::thread::spawn(move || {
        let written = database.open().unwrap().write(|_| {
            hold.send(()).unwrap();
            released.recv().unwrap();
            Ok(())
        });
        written.unwrap();
    });
    held.recv().unwrap();
    let body = json!({ "model": "m", "input": "hi", "background": true }).to_string();
    let mut clients = Vec::new();
    for _ in 0..32 {
        let mut client = RawConnection::connect(&server.server).await;
        let head = "POST /v1/responses HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
        client.send(format!("{head}content-length: {}\r\n\r\n{body}", body.len())).await;
        clients.push(client);
    }
    until_in_flight(&server, 32).await;
    for client in &mut clients {
        client.half_close().await;
    }
    // A run whose client's disconnect the server has not noticed when it is stored would continue.
    for client in &mut clients {
        assert_eq!(client.rest().await, "");
    }
    release.send(()).unwrap();
    writer.join().unwrap();
    until_in_flight(&server, 0).await;
    let response = server.created(json!({ "background": true })).await;
    let path = format!("/v1/responses/{}", response["id"].as_str().unwrap());
    let cancelled = json_of(server.ask(Method::POST, &format!("{path}/cancel")).await).await;
    assert_eq!(cancelled["status"], "cancelled");
    server.server.stop().await;
}

#[tokio::test]
async fn slow_readers_of_large_stored_responses_have_a_share_of_the_memory() {
    let home = tempfile::tempdir().unwrap();
    let config = ServerConfig {
        max_body_mb: 2,
        queue_timeout: Duration::from_millis(100),
        // No reader is disconnected while the others begin.
        write_timeout: 10 * WAIT_LIMIT,
        ..loopback_config()
    };
    let server = StoringServer::start_on(home, hello(), config).await;
    store_response(&server, "resp_large", "[]", json!({ "id": "resp_large", "text": "x".repeat(24 << 20) }));
    let mut readers = Vec::new();
    // As many as there are large bodies.
    for _ in 0..16 {
        let mut reader = RawConnection::connect(&server.server).await;
        reader.send("GET /v1/responses/resp_large HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
        assert!(reader.until("\r\n\r\n").await.starts_with("HTTP/1.1 200"));
        readers.push(reader);
    }
    let refused = server.ask(Method::GET, "/v1/responses/resp_large").await;
    assert_eq!(error_of(refused).await, (503, Value::Null, json!("no_room")));
    drop(readers);
    let reading = async {
        while server.ask(Method::GET, "/v1/responses/resp_large").await.status() != 200 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(WAIT_LIMIT, reading).await.expect("there is room again");
}

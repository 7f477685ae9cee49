//! `GET /v1/events`, for the owner.

use std::time::Duration;

use hob_config::ServerConfig;
use hob_keys::{AuditActor, KeyName, KeyRole};
use reqwest::Method;
use serde_json::{Value, json};

use crate::client::asking;
use crate::fixtures::{calculating, loopback_config, parts, reached_from_network};
use crate::key_fixtures::{create_key, key_parts, key_service, post, send};
use crate::support::{TestServer, WAIT_LIMIT};

/// Reads `count` events.
async fn read(response: &mut reqwest::Response, count: usize) -> Vec<Value> {
    let mut text = String::new();
    let reading = async {
        while text.matches("\n\n").count() < count + text.matches(": alive\n\n").count() {
            let bytes = response.chunk().await.unwrap().expect("more events");
            text += std::str::from_utf8(&bytes).unwrap();
        }
    };
    tokio::time::timeout(WAIT_LIMIT, reading).await.expect("so many events");
    let events = text.split_terminator("\n\n").filter(|event| *event != ": alive");
    events
        .map(|event| {
            let (name, data) = event.strip_prefix("event: ").unwrap().split_once("\ndata: ").unwrap();
            let data: Value = serde_json::from_str(data).unwrap();
            assert_eq!(data["event"], name);
            data
        })
        .collect()
}

#[tokio::test]
async fn the_owner_receives_the_events_of_an_agent_in_order() {
    let server = TestServer::start_system(parts(calculating()), loopback_config()).await;
    let mut watching = server.client.get(server.url("/v1/events")).send().await.unwrap();
    assert_eq!(
        (watching.status().as_u16(), &watching.headers()["content-type"]),
        (200, &"text/event-stream".parse().unwrap())
    );

    let answer: Value = server.chat(&asking(json!({}))).await.json().await.unwrap();
    let events = read(&mut watching, 10).await;
    let names: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    let expected = [
        "AGENT_TURN_START",
        "INFERENCE_START",
        "INFERENCE_END",
        "TOOL_CALL_START",
        "TOOL_CALL_END",
        "AGENT_TURN_END",
        "AGENT_TURN_START",
        "INFERENCE_START",
        "INFERENCE_END",
        "AGENT_TURN_END",
    ];
    assert_eq!(names, expected);
    assert!(events.iter().all(|event| event["run"] == answer["id"]), "all of one run: {events:?}");
    assert!(events.is_sorted_by_key(|event| event["at"].as_f64()));
    assert_eq!(events[3]["data"]["tool"], "calculator");
    assert_eq!(events[4]["data"]["success"], true);
    assert_eq!(events[5]["data"], json!({ "agent": "orchestrator", "turn": 1, "tool_calls": 1 }));
}

#[tokio::test]
async fn strangers_receive_no_events() {
    let engine = calculating();
    let server = reached_from_network(&engine, ServerConfig::default()).await;
    let response = server.client.get(server.url("/v1/events")).send().await.unwrap();
    assert_eq!(response.status(), 403);
    let error = response.json::<Value>().await.unwrap()["error"].take();
    assert_eq!(error["type"], "permission_error");
    assert!(error["message"].as_str().unwrap().contains("api_key"), "{error}");
}

#[tokio::test]
async fn an_open_event_stream_does_not_delay_shutdown() {
    // Far longer than the test waits: only the shutdown itself may end the event stream.
    let config = ServerConfig { shutdown_grace: 10 * WAIT_LIMIT, ..loopback_config() };
    let server = TestServer::start_system(parts(calculating()), config).await;
    let watching = server.client.get(server.url("/v1/events")).send().await.unwrap();
    let stopped = tokio::time::timeout(WAIT_LIMIT, server.stop()).await;
    assert_eq!(stopped.expect("well before the grace period"), 0);
    let rest = tokio::time::timeout(Duration::from_secs(60), watching.text()).await.unwrap();
    assert!(rest.is_ok(), "the stream ends properly: {rest:?}");
}

#[tokio::test]
async fn the_events_of_a_key_end_when_it_is_revoked() {
    let home = tempfile::tempdir().unwrap();
    let keys = key_service();
    let server =
        TestServer::start_parts(key_parts(&home, &keys, parts(calculating())), loopback_config()).await;
    let revoked = create_key(&keys, "ana", KeyRole::Owner, json!({})).await;
    let other = create_key(&keys, "ben", KeyRole::Owner, json!({})).await;
    let watching = send(&server, Method::GET, "/v1/events", &revoked, None).await;
    assert_eq!(watching.status(), 200);
    keys.revoke(&KeyName::parse("ana").unwrap(), AuditActor::terminal()).await.unwrap();
    assert_eq!(post(&server, "/v1/chat/completions", &other, asking(json!({}))).await.0, 200);
    let rest = tokio::time::timeout(WAIT_LIMIT, watching.text()).await.expect("the stream ends").unwrap();
    assert!(!rest.contains("event:"), "{rest}");
}

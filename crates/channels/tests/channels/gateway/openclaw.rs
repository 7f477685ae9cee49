//! OpenClaw's own protocol, as the real gateway uses it, checked against its official schema.

use std::sync::Arc;

use hob_channels::{Channel, GatewayOptions};
use hob_channels::{ChannelError, ChannelStatus};
use hob_testkit::{Gateway, GatewayScript, Reply};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::support::{Echo, echoing_with, quick};
use crate::wait::{WAIT_LIMIT, until};

fn recorded() -> Vec<Value> {
    let text = include_str!("../../../../testkit/transcripts/openclaw/frames.json");
    let frames: Vec<Value> = serde_json::from_str(text).unwrap();
    frames.into_iter().filter(|frame| frame["dir"] == "in").map(|frame| frame["frame"].clone()).collect()
}

fn recorded_event(name: &str) -> Value {
    recorded().into_iter().find(|frame| frame["event"] == name).unwrap()
}

/// Answers requests as the recorded gateway did.
fn answer(request: &str) -> Vec<String> {
    let request: Value = serde_json::from_str(request).unwrap();
    let payload = match request["method"].as_str().unwrap() {
        "connect" if request["params"]["auth"]["token"] != "testtoken" => {
            let error = json!({ "code": "UNAUTHORIZED", "message": "token mismatch" });
            return vec![
                json!({ "type": "res", "id": request["id"], "ok": false, "error": error }).to_string(),
            ];
        }
        "connect" => recorded()[1]["payload"].clone(),
        "sessions.subscribe" => json!({ "subscribed": true }),
        "channels.status" => json!({
            "ts": 1, "channelOrder": ["telegram", "discord"], "channelLabels": {}, "channels": {},
            "channelAccounts": {}, "channelDefaultAccountId": {},
        }),
        "send" => json!({ "messageId": "9" }),
        other => panic!("the gateway has no method {other}"),
    };
    vec![json!({ "type": "res", "id": request["id"], "ok": true, "payload": payload }).to_string()]
}

fn script() -> GatewayScript {
    GatewayScript {
        greeting: Some(recorded()[0].to_string()),
        answer: Arc::new(answer),
        // The real one answers any request with its web page.
        http: Arc::new(|_| Reply::new(200, "text/html; charset=utf-8", "<!doctype html>")),
        ..GatewayScript::default()
    }
}

/// It greets at once, on a busy machine a little later: there is no need to hurry.
fn patient(gateway: &Gateway) -> GatewayOptions {
    let mut options = quick(gateway.url());
    options.timeouts.detect_within = WAIT_LIMIT;
    options
}

fn with_token(gateway: &Gateway, token: &str) -> GatewayOptions {
    GatewayOptions { token: Some(token.to_owned().into()), ..patient(gateway) }
}

/// Asserts that a frame of ours is one of the protocol's, and its parameters are those of its method.
fn assert_fits(frame: &Value) {
    let modules = std::env::var("HOB_TEST_NODE_MODULES");
    let modules = modules.expect("HOB_TEST_NODE_MODULES is not set: run this test with './dev test'");
    let path = format!("{modules}/@openclaw/gateway-protocol/protocol.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let definitions = &schema["definitions"];
    let fits = |name: &str, value: &Value| {
        let validator = jsonschema::validator_for(&definitions[name]).unwrap();
        let faults: Vec<String> = validator.iter_errors(value).map(|error| error.to_string()).collect();
        assert_eq!(faults, Vec::<String>::new(), "{name}: {value}");
    };
    fits("RequestFrame", frame);
    match frame["method"].as_str().unwrap() {
        "connect" => fits("ConnectParams", &frame["params"]),
        "send" => fits("SendParams", &frame["params"]),
        "channels.status" => fits("ChannelsStatusParams", &frame["params"]),
        "sessions.subscribe" => assert_eq!(frame["params"], json!({})),
        other => panic!("no schema for {other}"),
    }
}

#[tokio::test]
async fn a_message_is_answered_in_its_conversation() {
    let gateway = Gateway::start(script()).await;
    let _bridge = echoing_with(with_token(&gateway, "testtoken")).await;
    let opening = timeout(WAIT_LIMIT, gateway.received(2)).await.unwrap();
    let methods: Vec<&str> = opening.iter().map(|frame| frame["method"].as_str().unwrap()).collect();
    assert_eq!(methods, ["connect", "sessions.subscribe"]);

    for frame in &recorded()[2..] {
        gateway.push(frame.to_string());
    }
    // The gateway repeats the message, as after a reconnect.
    gateway.push(recorded_event("session.message").to_string());
    let frames = timeout(WAIT_LIMIT, gateway.received(3)).await.unwrap();
    let key = "hob-reply:telegram:telegram:777:d52e9942-b41a-4b12-b935-99d269b65c26-0";
    assert_eq!(
        frames[2]["params"],
        json!({
            "channel": "telegram",
            "to": "telegram:777",
            "message": "re: ping from Ann",
            "idempotencyKey": key,
            "accountId": "default",
        })
    );
    for frame in &frames {
        assert_fits(frame);
    }
    assert_eq!(gateway.frames().len(), 3, "answered once");
}

#[tokio::test]
async fn channels_are_listed_and_messages_sent_over_the_socket() {
    let gateway = Gateway::start(script()).await;
    let client = echoing_with(with_token(&gateway, "testtoken")).await;
    assert_eq!(client.list_channels().await.unwrap(), ["telegram", "discord"]);
    client.send("telegram:777", "hello", None).await.unwrap();
    let error = client.send("telegram", "hello", None).await.unwrap_err();
    assert!(
        matches!(&error, ChannelError::Invalid { reason } if reason.contains("telegram:12345")),
        "{error}"
    );
    let frames = gateway.frames();
    assert_eq!(frames.len(), 4);
    for frame in &frames {
        assert_fits(frame);
    }
    assert_eq!(
        (&frames[3]["params"]["channel"], &frames[3]["params"]["to"]),
        (&json!("telegram"), &json!("777"))
    );
    assert!(frames[3]["params"]["idempotencyKey"].as_str().unwrap().starts_with("hob-"));
    assert_eq!(gateway.requests().len(), 0, "its HTTP side has no /send");
}

#[tokio::test]
async fn without_a_listener_requests_use_a_single_use_connection() {
    let gateway = Gateway::start(script()).await;
    let client = Channel::gateway(with_token(&gateway, "testtoken")).unwrap();
    client.on_message(Arc::new(Echo));
    assert_eq!(client.list_channels().await.unwrap(), ["telegram", "discord"]);
    client.send("telegram:777", "hello", None).await.unwrap();
    // A message that comes meanwhile is for the client that listens.
    gateway.push(recorded_event("session.message").to_string());
    client.send("telegram:777", "again", None).await.unwrap();
    let sends = gateway.frames().iter().filter(|frame| frame["method"] == "send").count();
    assert_eq!((sends, gateway.connections_so_far(), client.status()), (2, 3, ChannelStatus::Disconnected));
}

#[tokio::test]
async fn a_wrong_token_is_an_error_with_the_gateways_text() {
    let gateway = Gateway::start(script()).await;
    let client = Channel::gateway(with_token(&gateway, "wrong")).unwrap();
    assert_eq!(client.connect().await, ChannelStatus::Error);
    let problem = client.report().problem.unwrap();
    assert!(problem.contains("token mismatch (UNAUTHORIZED)"), "{problem}");

    let client = Channel::gateway(patient(&gateway)).unwrap();
    assert_eq!(client.connect().await, ChannelStatus::Error);
    let problem = client.report().problem.unwrap();
    assert!(problem.contains("set [channel] token"), "{problem}");
}

#[tokio::test]
async fn while_it_is_disconnected_nothing_is_posted_to_its_web_page() {
    let gateway = Gateway::start(script()).await;
    let address = gateway.address();
    let client = echoing_with(with_token(&gateway, "testtoken")).await;
    drop(gateway);
    until("noticed", || client.status() != ChannelStatus::Connected).await;
    let error = client.send("telegram:777", "hello", None).await.unwrap_err();
    assert!(matches!(error, ChannelError::Undelivered { .. }), "{error}");
    let gateway = Gateway::on(address, script()).await;
    until("connected", || client.status() == ChannelStatus::Connected).await;
    client.send("telegram:777", "hello", None).await.unwrap();
    assert_eq!(gateway.requests().len(), 0);
}

#[tokio::test]
async fn a_refused_send_keeps_the_gateways_text() {
    let refusing = GatewayScript {
        answer: Arc::new(|request| {
            let request_value: Value = serde_json::from_str(request).unwrap();
            if request_value["method"] != "send" {
                return answer(request);
            }
            let error = json!({ "code": "NOT_FOUND", "message": "no such chat" });
            vec![json!({ "type": "res", "id": request_value["id"], "ok": false, "error": error }).to_string()]
        }),
        ..script()
    };
    let gateway = Gateway::start(refusing).await;
    let client = Channel::gateway(with_token(&gateway, "testtoken")).unwrap();
    client.on_message(Arc::new(Echo));
    client.connect().await;
    let error = client.send("telegram:1", "hello", None).await.unwrap_err().to_string();
    assert!(error.contains("no such chat (NOT_FOUND)"), "{error}");
}

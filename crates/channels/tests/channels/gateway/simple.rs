//! The simple protocol: messages in, replies and sends out, HTTP where the socket is not.

use std::sync::Arc;
use std::time::Duration;

use hob_channels::Channel;
use hob_channels::{ChannelError, ChannelStatus};
use hob_core::EventBus;
use hob_testkit::{Gateway, GatewayScript, Reply};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::support::{content, echoing, echoing_with, frame, heard, quick};
use crate::wait::{WAIT_LIMIT, until};

#[tokio::test]
async fn a_message_is_answered_in_the_same_conversation_and_both_are_published() {
    let gateway = Gateway::start(GatewayScript::default()).await;
    let bus = EventBus::new();
    let (heard, _subscription) = heard(&bus);
    let client = echoing_with(hob_channels::GatewayOptions { events: bus, ..quick(gateway.url()) }).await;
    gateway.push(frame("t1", 1));
    let frames = timeout(WAIT_LIMIT, gateway.received(1)).await.unwrap();
    let expected =
        json!({ "channel": "telegram", "content": "re: t1-1", "conversation_id": "t1", "metadata": {} });
    assert_eq!(frames, [expected]);
    until("both were notified", || heard.lock().unwrap().len() == 2).await;
    client.close().await;
    let received = json!({ "channel": "telegram", "sender": "ann", "content": "t1-1", "message_id": "t1-1" });
    let sent = json!({ "channel": "telegram", "content": "re: t1-1", "conversation_id": "t1" });
    assert_eq!(
        *heard.lock().unwrap(),
        [("CHANNEL_MESSAGE_RECEIVED".to_owned(), received), ("CHANNEL_MESSAGE_SENT".to_owned(), sent)]
    );
}

#[tokio::test]
async fn a_send_goes_over_the_socket_and_is_confirmed() {
    let gateway = Gateway::start(GatewayScript::default()).await;
    let client = echoing(&gateway).await;
    client.send("slack", "hello", None).await.unwrap();
    // Confirmed means read: the frame is there already.
    assert_eq!(
        gateway.frames(),
        [json!({ "channel": "slack", "content": "hello", "conversation_id": null, "metadata": {} })]
    );
    assert_eq!(gateway.requests().len(), 0);
}

#[tokio::test]
async fn without_a_socket_a_send_goes_over_http() {
    let gateway = Gateway::start(GatewayScript::default()).await;
    let client = Channel::gateway(quick(gateway.url())).unwrap();
    client.send("slack", "hello", Some("t1")).await.unwrap();
    let requests = gateway.requests();
    assert_eq!((requests[0].method.as_str(), requests[0].path.as_str()), ("POST", "/send"));
    assert_eq!(
        serde_json::from_slice::<Value>(&requests[0].body).unwrap(),
        json!({ "channel": "slack", "content": "hello", "conversation_id": "t1", "metadata": {} })
    );
    assert_eq!(client.status(), ChannelStatus::Disconnected);
}

#[tokio::test]
async fn a_send_that_fails_says_why() {
    let script = GatewayScript {
        http: Arc::new(|_| Reply::json(503, r#"{"detail":"telegram is down"}"#)),
        ..GatewayScript::default()
    };
    let gateway = Gateway::start(script).await;
    let client = Channel::gateway(quick(gateway.url())).unwrap();
    let error = client.send("telegram", "hello", None).await.unwrap_err().to_string();
    assert!(error.contains("503") && error.contains("telegram is down"), "{error}");
    for (channel, words) in [("", "x"), ("telegram", " \n")] {
        assert!(matches!(client.send(channel, words, None).await, Err(ChannelError::Invalid { .. })));
    }
    drop(gateway);
    let error = client.send("telegram", "hello", None).await.unwrap_err();
    assert!(matches!(error, ChannelError::Undelivered { .. }), "{error}");
}

#[tokio::test]
async fn channels_are_listed_over_http_bare_or_wrapped_and_a_web_page_is_not_a_list() {
    for (reply, expected) in [
        (Reply::json(200, r#"["telegram","slack"]"#), Ok(vec!["telegram", "slack"])),
        (Reply::json(200, r#"{"channels":["telegram"]}"#), Ok(vec!["telegram"])),
        (Reply::new(200, "text/html; charset=utf-8", "<html></html>"), Err("Check [channel] gateway_url")),
        (Reply::json(500, "oops"), Err("500")),
        (Reply::json(200, vec![b'x'; 2 << 20]), Err("longer than")),
    ] {
        let script = GatewayScript { http: Arc::new(move |_| reply.clone()), ..GatewayScript::default() };
        let gateway = Gateway::start(script).await;
        let listed = Channel::gateway(quick(gateway.url())).unwrap().list_channels().await;
        match expected {
            Ok(names) => assert_eq!(listed.unwrap(), names),
            Err(reason) => {
                let error = listed.unwrap_err().to_string();
                assert!(error.contains(reason), "{error}");
            }
        }
    }
}

#[tokio::test]
async fn invalid_frames_are_skipped() {
    let gateway = Gateway::start(GatewayScript::default()).await;
    let client = echoing(&gateway).await;
    gateway.push("nonsense");
    gateway.push("[]");
    gateway.push(r#"{"channel":"telegram"}"#);
    gateway.push_bytes(vec![0; 1_000]);
    gateway.push(json!({ "channel": "t", "content": "x".repeat(2 << 20) }).to_string());
    gateway.push(frame("t1", 1));
    let frames = timeout(WAIT_LIMIT, gateway.received(1)).await.unwrap();
    assert_eq!(content(&frames[0]), "re: t1-1");
    assert_eq!((gateway.connections_so_far(), client.status()), (1, ChannelStatus::Connected));
}

#[tokio::test]
async fn the_token_is_sent_to_the_gateway_only() {
    let gateway = Gateway::start(GatewayScript::default()).await;
    let token = Some("s3cret".to_owned().into());
    let client = Channel::gateway(hob_channels::GatewayOptions { token, ..quick(gateway.url()) }).unwrap();
    client.send("slack", "hello", None).await.unwrap();
    assert_eq!(gateway.requests()[0].header("authorization"), Some("Bearer s3cret"));
    assert!(!format!("{:?}", client.report()).contains("s3cret"));
}

#[tokio::test]
async fn an_address_that_is_none_is_refused() {
    let error = Channel::gateway(quick("http://localhost:1")).err().unwrap().to_string();
    assert!(error.contains("'ws:' or 'wss:'"), "{error}");
}

#[tokio::test]
async fn a_slow_gateway_has_not_confirmed_the_message() {
    // It reads nothing: neither the frame nor the ping behind it.
    let gateway = Gateway::start(GatewayScript { is_deaf: true, ..GatewayScript::default() }).await;
    let mut options = quick(gateway.url());
    options.timeouts.confirm_within = Duration::from_millis(200);
    let client = echoing_with(options).await;
    let error = client.send("slack", "hello", None).await.unwrap_err().to_string();
    assert!(error.contains("did not confirm") && error.contains("may have arrived"), "{error}");
    assert_eq!(gateway.requests().len(), 0, "sending it again over HTTP could deliver it twice");
}

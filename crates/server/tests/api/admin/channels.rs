//! `/v1/channels`, over a scripted gateway.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use hob_app::AskService;
use hob_channels::{ChannelError, ChannelReport, ChannelStatus, Channels};
use hob_config::ServerConfig;
use hob_testkit::{Outside, ScriptedEngine};
use serde_json::{Value, json};

use crate::fixtures::loopback_config;
use crate::support::{TestServer, plain_parts};

type Sent = (String, String, Option<String>);

/// Accepts every message, except one to the channel `nobody`.
pub struct FakeChannels {
    status: ChannelStatus,
    sent: Mutex<Vec<Sent>>,
}

#[async_trait]
impl Channels for FakeChannels {
    async fn send(&self, channel: &str, content: &str, thread: Option<&str>) -> Result<(), ChannelError> {
        if channel == "nobody" {
            let reason = "the gateway is not connected".to_owned();
            return Err(ChannelError::Undelivered { channel: channel.to_owned(), reason });
        }
        let message = (channel.to_owned(), content.to_owned(), thread.map(str::to_owned));
        self.sent.lock().unwrap().push(message);
        Ok(())
    }

    async fn list(&self) -> Result<Vec<String>, ChannelError> {
        match self.status {
            ChannelStatus::Connected => Ok(vec!["telegram".into(), "slack".into()]),
            _ => Err(ChannelError::Unlisted { gateway: "ws://x".into(), reason: "it is away".into() }),
        }
    }

    fn report(&self) -> ChannelReport {
        let trouble = (self.status == ChannelStatus::Error).then(|| "it is away".to_owned());
        ChannelReport { status: self.status, gateway_url: "ws://x".into(), trouble }
    }
}

pub async fn server(status: ChannelStatus, config: ServerConfig) -> (TestServer, Arc<FakeChannels>) {
    let channels = Arc::new(FakeChannels { status, sent: Mutex::default() });
    let system = AskService::new(plain_parts(Arc::new(ScriptedEngine::saying(&["hi"]))));
    let system = system.with_channels(Arc::clone(&channels) as Arc<dyn Channels>);
    (TestServer::start_parts(Arc::new(system), config).await, channels)
}

async fn get(server: &TestServer, path: &str) -> (u16, Value) {
    let response = server.client.get(server.url(path)).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

async fn send(server: &TestServer, body: Value) -> (u16, Value) {
    let request = server.client.post(server.url("/v1/channels/send")).json(&body);
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

#[tokio::test]
async fn channels_and_their_status_have_the_documented_bodies() {
    let (server, _) = server(ChannelStatus::Connected, loopback_config()).await;
    let listed = get(&server, "/v1/channels").await;
    assert_eq!(listed, (200, json!({ "channels": ["telegram", "slack"], "status": "connected" })));
    let status = get(&server, "/v1/channels/status").await;
    let expected = json!({
        "status": "connected", "connected": true, "gateway_url": "ws://x", "channels": ["telegram", "slack"],
    });
    assert_eq!(status, (200, expected));
}

#[tokio::test]
async fn a_gateway_that_is_away_is_no_error_of_the_server() {
    let (server, _) = server(ChannelStatus::Error, loopback_config()).await;
    let (code, listed) = get(&server, "/v1/channels").await;
    assert_eq!((code, &listed["channels"], &listed["status"]), (200, &json!([]), &json!("error")));
    assert!(listed["message"].as_str().unwrap().contains("it is away"), "{listed}");
    let (code, status) = get(&server, "/v1/channels/status").await;
    assert_eq!((code, &status["status"], &status["connected"]), (200, &json!("error"), &json!(false)));
    assert_eq!(status["message"], "it is away");
}

#[tokio::test]
async fn without_channels_the_list_is_empty_and_the_rest_is_not_available() {
    let server = TestServer::start(Arc::new(ScriptedEngine::saying(&["hi"]))).await;
    let (code, listed) = get(&server, "/v1/channels").await;
    assert_eq!((code, &listed["channels"], listed.get("status")), (200, &json!([]), None));
    assert!(listed["message"].as_str().unwrap().contains("[channel]"), "{listed}");
    let (code, status) = get(&server, "/v1/channels/status").await;
    assert_eq!((code, &status["error"]["code"]), (503, &json!("channels_not_configured")));
    let (code, sent) = send(&server, json!({ "channel": "telegram", "content": "hi" })).await;
    assert_eq!((code, &sent["error"]["code"]), (503, &json!("channels_not_configured")));
}

#[tokio::test]
async fn both_shapes_send_and_the_first_wins() {
    let (server, channels) = server(ChannelStatus::Connected, loopback_config()).await;
    let first = json!({ "channel": "telegram", "content": "one", "conversation_id": "t1" });
    assert_eq!(send(&server, first).await, (200, json!({ "status": "sent", "channel": "telegram" })));
    let second = json!({ "target": "slack", "message": "two" });
    assert_eq!(send(&server, second).await, (200, json!({ "status": "sent", "target": "slack" })));
    let both = json!({ "target": "slack", "message": "no", "channel": "telegram", "content": "three" });
    assert_eq!(send(&server, both).await, (200, json!({ "status": "sent", "channel": "telegram" })));
    let sent = channels.sent.lock().unwrap().clone();
    let expected = [("telegram", "one", Some("t1")), ("slack", "two", None), ("telegram", "three", None)];
    let expected = expected.map(|(channel, content, thread)| {
        (channel.to_owned(), content.to_owned(), thread.map(str::to_owned))
    });
    assert_eq!(sent, expected);
}

#[tokio::test]
async fn a_wrong_message_names_its_field_and_an_undelivered_one_says_why() {
    let (server, channels) = server(ChannelStatus::Connected, loopback_config()).await;
    for (body, param) in [
        (json!({}), "channel"),
        (json!({ "channel": "telegram" }), "content"),
        (json!({ "target": "slack" }), "content"),
        (json!({ "channel": 1, "content": "x" }), "channel"),
        (json!({ "channel": "", "content": "x" }), "channel"),
        (json!({ "channel": "telegram", "content": " " }), "content"),
        (json!({ "channel": "telegram", "content": "x", "conversation_id": 7 }), "conversation_id"),
    ] {
        let (code, error) = send(&server, body.clone()).await;
        assert_eq!((code, &error["error"]["param"]), (400, &json!(param)), "{body}");
    }
    assert_eq!(send(&server, json!([])).await.0, 400);
    assert_eq!(channels.sent.lock().unwrap().len(), 0);
    let (code, error) = send(&server, json!({ "channel": "nobody", "content": "x" })).await;
    assert_eq!((code, &error["error"]["code"]), (502, &json!("delivery_failed")));
    assert!(error["detail"].as_str().unwrap().contains("the gateway is not connected"), "{error}");
}

#[tokio::test]
async fn strangers_may_look_and_not_send() {
    let network = Outside::find();
    let config = ServerConfig { host: "0.0.0.0".into(), port: 0, ..ServerConfig::default() };
    for (status, names) in
        [(ChannelStatus::Connected, json!(["telegram", "slack"])), (ChannelStatus::Error, json!([]))]
    {
        let (mut server, _) = server(status, config.clone()).await;
        server.address.set_ip(network.address());
        let word = status.as_str();
        let listed = get(&server, "/v1/channels").await;
        assert_eq!(listed, (200, json!({ "channels": names, "status": word })));
        let told = get(&server, "/v1/channels/status").await;
        let connected = status == ChannelStatus::Connected;
        assert_eq!(told, (200, json!({ "status": word, "connected": connected, "channels": names })));
    }
    let (mut server, _) = server(ChannelStatus::Connected, config).await;
    server.address.set_ip(network.address());
    let (code, error) = send(&server, json!({ "channel": "telegram", "content": "hi" })).await;
    assert_eq!((code, &error["error"]["type"]), (403, &json!("permission_error")));
}

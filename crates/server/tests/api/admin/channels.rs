//! `/v1/channels`, over a gateway on a real socket.

use std::sync::Arc;
use std::time::Duration;

use hob_app::AskService;
use hob_channels::{ChannelOptions, ChannelService, ChannelStatus, GatewayOptions, GatewayTimeouts};
use hob_config::ServerConfig;
use hob_core::Ask;
use hob_testkit::{Gateway, GatewayScript, Outside, ScriptedEngine, free_port};
use serde_json::{Value, json};

use crate::fixtures::loopback_config;
use crate::support::{TestServer, WAIT_LIMIT, plain_parts};

/// A server with channels.
pub struct ChannelServer {
    http: TestServer,
    /// `None` if no gateway answers.
    gateway: Option<Gateway>,
}

impl AsRef<TestServer> for ChannelServer {
    fn as_ref(&self) -> &TestServer {
        &self.http
    }
}

/// A server whose channels are connected, or whose gateway does not answer.
pub async fn server(status: ChannelStatus, config: ServerConfig) -> ChannelServer {
    let gateway = match status {
        ChannelStatus::Connected => Some(Gateway::start(GatewayScript::default()).await),
        _ => None,
    };
    let nowhere = || format!("ws://127.0.0.1:{}/ws", free_port());
    let url = gateway.as_ref().map_or_else(nowhere, Gateway::url);
    let timeouts =
        GatewayTimeouts { detect_within: Duration::from_millis(100), ..GatewayTimeouts::default() };
    let options = GatewayOptions { timeouts, ..GatewayOptions::new(url) };
    let channels = ChannelOptions { gateway: Some(options), ..ChannelOptions::default() };
    let channels = Arc::new(ChannelService::new(channels).unwrap());
    let system = AskService::new(plain_parts(Arc::new(ScriptedEngine::saying(&["hi"]))));
    let system = Arc::new(system.with_channels(Some(Arc::clone(&channels))));
    channels.listen(&(Arc::clone(&system) as Arc<dyn Ask>));
    let reached = async {
        while channels.report().status != status {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(WAIT_LIMIT, reached).await.unwrap();
    ChannelServer { http: TestServer::start_parts(system, config).await, gateway }
}

async fn get(server: &impl AsRef<TestServer>, path: &str) -> (u16, Value) {
    let server = server.as_ref();
    let response = server.client.get(server.url(path)).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

async fn send(server: &impl AsRef<TestServer>, body: Value) -> (u16, Value) {
    let server = server.as_ref();
    let request = server.client.post(server.url("/v1/channels/send")).json(&body);
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

#[tokio::test]
async fn channels_and_their_status_have_the_documented_bodies() {
    let server = server(ChannelStatus::Connected, loopback_config()).await;
    let listed = get(&server, "/v1/channels").await;
    assert_eq!(listed, (200, json!({ "channels": ["telegram", "slack"], "status": "connected" })));
    let status = get(&server, "/v1/channels/status").await;
    let expected = json!({
        "status": "connected", "connected": true, "gateway_url": server.gateway.as_ref().unwrap().url(),
        "channels": ["telegram", "slack"],
    });
    assert_eq!(status, (200, expected));
}

#[tokio::test]
async fn a_disconnected_gateway_is_not_a_server_error() {
    let server = server(ChannelStatus::Error, loopback_config()).await;
    let (code, listed) = get(&server, "/v1/channels").await;
    assert_eq!((code, &listed["channels"], &listed["status"]), (200, &json!([]), &json!("error")));
    assert!(listed["message"].as_str().unwrap().contains("cannot list the channels"), "{listed}");
    let (code, status) = get(&server, "/v1/channels/status").await;
    assert_eq!((code, &status["status"], &status["connected"]), (200, &json!("error"), &json!(false)));
    assert!(status["message"].as_str().unwrap().contains("cannot connect to the gateway"), "{status}");
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
async fn both_body_formats_send_a_message_and_the_first_has_priority() {
    let server = server(ChannelStatus::Connected, loopback_config()).await;
    let first = json!({ "channel": "telegram", "content": "one", "conversation_id": "t1" });
    assert_eq!(send(&server, first).await, (200, json!({ "status": "sent", "channel": "telegram" })));
    let second = json!({ "target": "slack", "message": "two" });
    assert_eq!(send(&server, second).await, (200, json!({ "status": "sent", "target": "slack" })));
    let both = json!({ "target": "slack", "message": "no", "channel": "telegram", "content": "three" });
    assert_eq!(send(&server, both).await, (200, json!({ "status": "sent", "channel": "telegram" })));
    let sent = server.gateway.as_ref().unwrap().received(3).await;
    let expected = [("telegram", "one", Some("t1")), ("slack", "two", None), ("telegram", "three", None)];
    let expected = expected.map(|(channel, content, thread)| {
        json!({ "channel": channel, "content": content, "conversation_id": thread, "metadata": {} })
    });
    assert_eq!(sent, expected);
}

#[tokio::test]
async fn an_invalid_message_names_its_field() {
    let server = server(ChannelStatus::Connected, loopback_config()).await;
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
    assert_eq!(server.gateway.as_ref().unwrap().frames(), [] as [Value; 0]);
}

#[tokio::test]
async fn an_undelivered_message_is_an_error_with_the_reason() {
    let server = server(ChannelStatus::Error, loopback_config()).await;
    let (code, error) = send(&server, json!({ "channel": "telegram", "content": "x" })).await;
    assert_eq!((code, &error["error"]["code"]), (502, &json!("delivery_failed")));
    let detail = error["detail"].as_str().unwrap();
    assert!(detail.starts_with("the message to 'telegram' was not delivered: http://127.0.0.1:"), "{error}");
}

#[tokio::test]
async fn strangers_can_list_channels_but_not_send() {
    let network = Outside::find();
    let config = ServerConfig { host: "0.0.0.0".into(), port: 0, ..ServerConfig::default() };
    for (status, names) in
        [(ChannelStatus::Connected, json!(["telegram", "slack"])), (ChannelStatus::Error, json!([]))]
    {
        let mut server = server(status, config.clone()).await;
        server.http.address.set_ip(network.address());
        let word = status.as_str();
        let listed = get(&server, "/v1/channels").await;
        assert_eq!(listed, (200, json!({ "channels": names, "status": word })));
        let answer = get(&server, "/v1/channels/status").await;
        let connected = status == ChannelStatus::Connected;
        assert_eq!(answer, (200, json!({ "status": word, "connected": connected, "channels": names })));
    }
    let mut server = server(ChannelStatus::Connected, config).await;
    server.http.address.set_ip(network.address());
    let (code, error) = send(&server, json!({ "channel": "telegram", "content": "hi" })).await;
    assert_eq!((code, &error["error"]["type"]), (403, &json!("permission_error")));
}

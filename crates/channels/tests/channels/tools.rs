//! The tools of messaging, called through the tool set, over a gateway on a real socket: what they do, and for whom.

use std::sync::Arc;
use std::time::Duration;

use hob_agents::ToolSet;
use hob_agents::builtin::{BuiltInOptions, built_in_tools};
use hob_channels::{ChannelOptions, ChannelService, ChannelStatus, GatewayOptions, channel_tools};
use hob_core::{Ask, Permit, Reach, RunEvents, ToolCall, ToolResult, ToolRunner};
use hob_testkit::{EngineAsk, Gateway, GatewayScript, Recorded, Reply, ScriptedEngine, free_port};
use serde_json::{Value, json};

/// A gateway with two channels, which refuses messages to `nobody`.
async fn gateway() -> Gateway {
    let http = |request: &Recorded| match request.path.as_str() {
        "/send" if request.text().contains("nobody") => Reply::json(400, r#"{"detail":"nobody is nowhere"}"#),
        "/send" => Reply::json(200, r#"{"status":"sent"}"#),
        _ => Reply::json(200, r#"["telegram","slack"]"#),
    };
    Gateway::start(GatewayScript { http: Arc::new(http), ..GatewayScript::default() }).await
}

fn service(url: String) -> Arc<ChannelService> {
    let gateway = Some(GatewayOptions::new(url));
    Arc::new(ChannelService::new(ChannelOptions { gateway, ..ChannelOptions::default() }).unwrap())
}

fn tool_set(gateway: &Gateway) -> ToolSet {
    ToolSet::new(channel_tools(&service(gateway.url()))).unwrap()
}

/// The messages that reached the gateway.
fn sent(gateway: &Gateway) -> Vec<Value> {
    let requests = gateway.requests();
    let sent = requests.iter().filter(|request| request.path == "/send");
    sent.map(|request| serde_json::from_slice(&request.body).unwrap()).collect()
}

async fn call(tools: &ToolSet, most: Reach, name: &str, arguments: &str) -> ToolResult {
    let tools = tools.for_run(Permit::up_to(most), RunEvents::without_subscribers()).unwrap();
    tools.execute(&ToolCall { id: "1".into(), name: name.into(), arguments: arguments.into() }).await
}

#[tokio::test]
async fn a_message_is_sent_and_the_model_gets_the_result() {
    let gateway = gateway().await;
    let tools = tool_set(&gateway);
    let result = call(
        &tools,
        Reach::Act,
        "channel_send",
        r#"{"channel":"telegram","content":"hi","conversation_id":"t1"}"#,
    )
    .await;
    assert_eq!((result.success, result.content.as_str()), (true, "The message to telegram was sent."));
    let expected = json!({ "channel": "telegram", "content": "hi", "conversation_id": "t1", "metadata": {} });
    assert_eq!(sent(&gateway), [expected]);
    let unsent = call(&tools, Reach::Act, "channel_send", r#"{"channel":"nobody","content":"hi"}"#).await;
    assert!(!unsent.success && unsent.content.contains("nobody is nowhere"), "{unsent:?}");
}

#[tokio::test]
async fn channels_and_their_status_are_reported() {
    let gateway = gateway().await;
    let tools = tool_set(&gateway);
    assert_eq!(call(&tools, Reach::Read, "channel_list", "{}").await.content, "telegram\nslack");
    assert_eq!(call(&tools, Reach::Read, "channel_status", "{}").await.content, "disconnected");

    let nowhere = service(format!("ws://127.0.0.1:{}/ws", free_port()));
    let ask: Arc<dyn Ask> = Arc::new(EngineAsk::new(Arc::new(ScriptedEngine::saying(&["hi"]))));
    nowhere.listen(&ask);
    let failed = async {
        while nowhere.report().status != ChannelStatus::Error {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), failed).await.unwrap();
    let tools = ToolSet::new(channel_tools(&nowhere)).unwrap();
    let status = call(&tools, Reach::Read, "channel_status", "{}").await.content;
    assert!(status.starts_with("error: cannot connect to the gateway at ws://127.0.0.1:"), "{status}");
}

#[tokio::test]
async fn strangers_can_neither_send_nor_list() {
    let gateway = gateway().await;
    let tools = tool_set(&gateway);
    for (most, name) in [
        (Reach::Pure, "channel_list"),
        (Reach::Pure, "channel_status"),
        (Reach::Pure, "channel_send"),
        (Reach::Read, "channel_send"),
    ] {
        let arguments =
            if name == "channel_send" { r#"{"channel":"telegram","content":"hi"}"# } else { "{}" };
        assert!(!call(&tools, most, name, arguments).await.success, "{name}");
    }
    assert_eq!(gateway.requests().len(), 0);
}

#[tokio::test]
async fn without_channels_there_are_no_such_tools() {
    let tools = ToolSet::new(built_in_tools(BuiltInOptions::default())).unwrap();
    assert!(tools.specs().all(|spec| !spec.name.starts_with("channel_")));
}

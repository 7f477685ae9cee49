//! Our own tools, served to a client that knows nothing of us.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use hob_core::{ToolCall, ToolDefinition, ToolResult, ToolRunner};
use hob_mcp::{McpServeError, serve};
use rmcp::model::{CallToolRequestParams, CallToolResponse, ClientConfig, ProtocolVersion};
use rmcp::service::{RunningService, ServiceError, ServiceExt};
use rmcp::{ClientLifecycleMode, ClientServiceExt, RoleClient};
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt, DuplexStream, duplex, split};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::support::WAIT_LIMIT;

/// Returns its arguments, fails, or waits forever.
#[derive(Default)]
struct Scripted {
    began: Notify,
    /// How many calls wait.
    waiting: AtomicUsize,
    left: Notify,
}

struct Waiting<'a>(&'a Scripted);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
        self.0.left.notify_one();
    }
}

#[async_trait]
impl ToolRunner for Scripted {
    fn definitions(&self) -> Vec<ToolDefinition> {
        ["say", "fail", "wait"]
            .map(|name| ToolDefinition {
                name: name.to_owned(),
                description: Some(format!("It can {name}.")),
                parameters: Some(json!({"type": "object", "properties": {"words": {"type": "string"}}})),
                strict: None,
            })
            .to_vec()
    }

    async fn execute(&self, call: &ToolCall) -> ToolResult {
        if call.name == "wait" {
            self.waiting.fetch_add(1, Ordering::SeqCst);
            let _waiting = Waiting(self);
            self.began.notify_one();
            return std::future::pending().await;
        }
        let success = call.name == "say";
        ToolResult { tool_name: call.name.clone(), content: call.arguments.clone(), success }
    }
}

struct Served {
    tools: Arc<Scripted>,
    serving: JoinHandle<Result<(), McpServeError>>,
    stream: DuplexStream,
}

fn served() -> Served {
    let tools = Arc::new(Scripted::default());
    let (ours, stream) = duplex(64 << 10);
    let (input, output) = split(ours);
    let given = Arc::clone(&tools);
    let serving = tokio::spawn(async move {
        serve(move || Arc::clone(&given) as Arc<dyn ToolRunner>, "1.2.3", input, output).await
    });
    Served { tools, serving, stream }
}

async fn text_of(
    client: &RunningService<RoleClient, impl rmcp::Service<RoleClient>>,
    tool: &'static str,
    arguments: Value,
) -> Result<Value, ServiceError> {
    let request = CallToolRequestParams::new(tool).with_arguments(arguments.as_object().unwrap().clone());
    match client.call_tool_once(request).await? {
        CallToolResponse::Complete(result) => {
            Ok(json!([result.is_error, result.content[0].as_text().unwrap().text]))
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_client_finds_and_uses_hobs_tools() {
    let Served { serving, stream, .. } = served();
    let client = ().serve(stream).await.unwrap();
    let info = client.peer_info().unwrap();
    let server = info.server_info.as_ref().unwrap();
    assert_eq!((server.name.as_str(), server.version.as_str()), ("hob", "1.2.3"));

    let tools = client.list_all_tools().await.unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
    assert_eq!(names, ["say", "fail", "wait"]);
    assert_eq!(tools[0].description.as_deref(), Some("It can say."));
    assert_eq!(tools[0].input_schema["properties"]["words"], json!({"type": "string"}));

    assert_eq!(
        text_of(&client, "say", json!({"words": "hm"})).await.unwrap(),
        json!([false, r#"{"words":"hm"}"#])
    );
    assert_eq!(text_of(&client, "fail", json!({})).await.unwrap(), json!([true, "{}"]));
    let unknown = text_of(&client, "fly", json!({})).await.unwrap_err();
    assert!(
        matches!(&unknown, ServiceError::McpError(error) if error.message == "there is no tool 'fly'"),
        "{unknown}"
    );

    client.cancel().await.unwrap();
    tokio::time::timeout(WAIT_LIMIT, serving).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn a_client_of_the_newer_protocol_is_served_too() {
    let Served { stream, .. } = served();
    let newest = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    let client = ClientConfig::default().serve_with_lifecycle(stream, newest).await.unwrap();
    assert_eq!(text_of(&client, "say", json!({})).await.unwrap(), json!([false, "{}"]));
}

#[tokio::test]
async fn a_call_that_the_client_cancels_is_stopped() {
    let Served { tools, stream, .. } = served();
    let client = ().serve(stream).await.unwrap();
    {
        let call = text_of(&client, "wait", json!({}));
        tokio::select! {
            answered = call => panic!("{answered:?}"),
            () = tools.began.notified() => {}
        }
    }
    tokio::time::timeout(WAIT_LIMIT, tools.left.notified()).await.expect("the call ends");
    assert_eq!(tools.waiting.load(Ordering::SeqCst), 0);
    assert_eq!(text_of(&client, "say", json!({})).await.unwrap(), json!([false, "{}"]));
}

#[tokio::test]
async fn too_many_calls_at_once_are_refused() {
    let Served { tools, stream, .. } = served();
    let client = Arc::new(().serve(stream).await.unwrap());
    for _ in 0..32 {
        let client = Arc::clone(&client);
        tokio::spawn(async move { text_of(&client, "wait", json!({})).await });
        tools.began.notified().await;
    }
    let refused = text_of(&client, "say", json!({})).await.unwrap();
    assert_eq!(refused, json!([true, "too many concurrent calls; wait until some are done"]));
}

#[tokio::test]
async fn a_client_that_disconnects_at_once_does_no_harm() {
    let Served { serving, stream, .. } = served();
    drop(stream);
    tokio::time::timeout(WAIT_LIMIT, serving).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn invalid_input_is_skipped_until_the_handshake() {
    let Served { mut stream, .. } = served();
    stream.write_all(b"hello?\n\xff\xff\n[1, 2\n").await.unwrap();
    let client = ().serve(stream).await.unwrap();
    assert_eq!(text_of(&client, "say", json!({})).await.unwrap(), json!([false, "{}"]));
}

//! Servers that behave at first: what they say of their tools later is not believed until the owner accepts it.

use hob_mcp::{McpServerStatus, McpServers, ToolChange, ToolPins, WithheldTool};
use serde_json::json;
use tokio::time::timeout;

use crate::support::{WAIT_LIMIT, call, echo, scripted};

async fn started(pins: &ToolPins) -> McpServers {
    let servers = McpServers::start(vec![scripted("files", "behaves")], pins);
    servers.settled().await;
    servers
}

async fn until(servers: &McpServers, wanted: impl Fn(&McpServerStatus) -> bool) -> McpServerStatus {
    let mut changes = servers.changes();
    let reached = changes.wait_for(|status| wanted(&status[0]));
    timeout(WAIT_LIMIT, reached).await.expect("in time").expect("servers that run")[0].clone()
}

fn offers(status: &McpServerStatus, tool: &str) -> bool {
    status.tools.iter().any(|offered| offered.spec().name == tool)
}

fn withheld(name: &str, change: ToolChange) -> Vec<WithheldTool> {
    vec![WithheldTool { name: name.into(), change }]
}

#[tokio::test]
async fn a_tool_that_appears_later_is_not_offered() {
    let servers = started(&ToolPins::default()).await;
    call(&servers, "files__grow", json!({})).await.unwrap();
    let status = until(&servers, |status| !status.withheld.is_empty()).await;
    assert_eq!(status.withheld, withheld("grown", ToolChange::New));
    assert!(!offers(&status, "files__grown"));
    assert_eq!(echo(&servers, "files").await.unwrap(), "hello", "its earlier tools still work");
    servers.shutdown().await;
}

#[tokio::test]
async fn a_tool_whose_description_changes_is_not_offered() {
    let servers = started(&ToolPins::default()).await;
    call(&servers, "files__change", json!({})).await.unwrap();
    let status = until(&servers, |status| !status.withheld.is_empty()).await;
    assert_eq!(status.withheld, withheld("echo", ToolChange::Changed));
    assert!(!offers(&status, "files__echo") && offers(&status, "files__pid"));
    servers.shutdown().await;
}

#[tokio::test]
async fn the_tools_of_a_server_are_remembered_across_restarts_until_the_owner_accepts_a_change() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("mcp_tools.json");
    let servers = started(&ToolPins::in_file(path.clone())).await;
    servers.shutdown().await;
    // The file says that this tool read differently when it was first seen.
    let kept = std::fs::read_to_string(&path).unwrap();
    let mut kept: serde_json::Value = serde_json::from_str(&kept).unwrap();
    kept["servers"]["files"]["echo"] = "0".repeat(64).into();
    std::fs::write(&path, kept.to_string()).unwrap();

    let servers = started(&ToolPins::in_file(path.clone())).await;
    assert_eq!(servers.status()[0].withheld, withheld("echo", ToolChange::Changed));
    servers.shutdown().await;

    assert!(ToolPins::in_file(path.clone()).forget("files").unwrap());
    let servers = started(&ToolPins::in_file(path)).await;
    assert_eq!(servers.status()[0].withheld, []);
    assert_eq!(echo(&servers, "files").await.unwrap(), "hello");
    servers.shutdown().await;
}

//! What the tests of MCP share.

use std::sync::Arc;
use std::time::Duration;

use hob_core::{Tool, ToolError};
use hob_mcp::{McpServerOptions, McpServers, McpState, McpTransport};
use serde_json::{Value, json};

/// Nothing here takes longer, on any machine.
pub const WAIT_LIMIT: Duration = Duration::from_secs(240);

/// Where `./dev test` put a part.
pub fn part(variable: &str) -> String {
    std::env::var(variable)
        .unwrap_or_else(|_| panic!("{variable} is not set: run this test with './dev test'"))
}

pub fn stdio(name: &str, command: &str, args: &[&str]) -> McpServerOptions {
    let transport = McpTransport::Stdio {
        command: command.into(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        env: Vec::new(),
        cwd: None,
    };
    McpServerOptions {
        restart_delay: Duration::from_millis(10),
        // A busy machine needs a while to start an interpreter. Tests of the limits set their own.
        start_timeout: WAIT_LIMIT,
        call_timeout: WAIT_LIMIT,
        ..McpServerOptions::new(name, transport)
    }
}

/// The server of `server.py`.
pub fn scripted(name: &str, behaviour: &str) -> McpServerOptions {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/server.py");
    stdio(name, &part("HOB_TEST_PYTHON"), &[script, behaviour])
}

pub fn tool(servers: &McpServers, name: &str) -> Arc<dyn Tool> {
    let tools = servers.tools();
    let names: Vec<String> = tools.iter().map(|tool| tool.spec().name.clone()).collect();
    let found = tools.into_iter().find(|tool| tool.spec().name == name);
    found.unwrap_or_else(|| panic!("no tool {name} among {names:?}; the servers: {:?}", states(servers)))
}

pub async fn call(servers: &McpServers, name: &str, arguments: Value) -> Result<String, ToolError> {
    tool(servers, name).call(arguments).await
}

pub async fn echo(servers: &McpServers, server: &str) -> Result<String, ToolError> {
    call(servers, &format!("{server}__echo"), json!({"message": "hello"})).await
}

pub fn states(servers: &McpServers) -> Vec<McpState> {
    servers.status().into_iter().map(|status| status.state).collect()
}

/// Waits until the first server is in such a state.
pub async fn reached(servers: &McpServers, wanted: impl Fn(&McpState) -> bool) {
    let mut changes = servers.changes();
    let reached = changes.wait_for(|status| wanted(&status[0].state));
    tokio::time::timeout(WAIT_LIMIT, reached).await.expect("the state in time").expect("servers that run");
}

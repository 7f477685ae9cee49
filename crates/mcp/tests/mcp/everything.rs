//! A real server that exercises the whole protocol, from npm.

use std::time::Duration;

use crate::support::{WAIT_LIMIT, call, part, states, stdio};
use futures::FutureExt;
use hob_core::Reach;
use hob_mcp::{McpServerOptions, McpServers, ToolPins};
use serde_json::json;
use tokio::time::timeout;

fn everything() -> McpServerOptions {
    let program =
        format!("{}/@modelcontextprotocol/server-everything/dist/index.js", part("HOB_TEST_NODE_MODULES"));
    stdio("every.thing", &part("HOB_TEST_NODE"), &[&program, "stdio"])
}

async fn started(options: McpServerOptions) -> McpServers {
    let servers = McpServers::start(vec![options], &ToolPins::default());
    servers.settled().await;
    servers
}

#[tokio::test]
async fn its_tools_have_a_name_a_schema_and_a_reach() {
    let servers = started(McpServerOptions { reach: Reach::Read, ..everything() }).await;
    let tool = crate::support::tool(&servers, "every_thing__get-sum");
    assert_eq!(tool.spec().reach, Reach::Read);
    assert_eq!(tool.spec().parameters["required"], json!(["a", "b"]));
    assert!(!tool.spec().description.is_empty());
    servers.shutdown().await;
}

#[tokio::test]
async fn its_tools_do_what_they_say() {
    let servers = started(everything()).await;
    let echo = call(&servers, "every_thing__echo", json!({"message": "grüß dich"})).await;
    assert_eq!(echo.unwrap(), "Echo: grüß dich", "{:?}", states(&servers));
    let sum = call(&servers, "every_thing__get-sum", json!({"a": 2, "b": 40})).await;
    assert_eq!(sum.unwrap(), "The sum of 2 and 40 is 42.");
    servers.shutdown().await;
}

#[tokio::test]
async fn calls_run_concurrently() {
    let servers = started(everything()).await;
    let long = json!({"duration": 2, "steps": 2});
    // Boxed, so that it is dropped before the servers end.
    let mut slow = Box::pin(call(&servers, "every_thing__trigger-long-running-operation", long));
    // The slow one is sent first.
    assert!(slow.as_mut().now_or_never().is_none());
    let quick = call(&servers, "every_thing__echo", json!({"message": "first"}));
    tokio::select! {
        // After a pause of this process, both answers are there.
        biased;
        quick = quick => assert_eq!(quick.unwrap(), "Echo: first"),
        slow = &mut slow => panic!("the quick one waits for the slow one: {slow:?}"),
    }
    assert!(slow.await.unwrap().starts_with("Long running operation completed."));
    servers.shutdown().await;
}

#[tokio::test]
async fn a_long_operation_ends_at_the_timeout_and_the_server_continues() {
    let servers =
        started(McpServerOptions { call_timeout: Duration::from_millis(300), ..everything() }).await;
    let long =
        call(&servers, "every_thing__trigger-long-running-operation", json!({"duration": 600, "steps": 2}));
    let error = timeout(Duration::from_secs(60), long).await.unwrap().unwrap_err();
    assert_eq!(error.0, "the MCP server 'every.thing' did not answer within 0.3 s");
    // On a busy machine this one may be late too.
    let echo = async {
        loop {
            match call(&servers, "every_thing__echo", json!({"message": "still here"})).await {
                Ok(echo) => break echo,
                Err(late) => assert_eq!(late.0, error.0),
            }
        }
    };
    assert_eq!(timeout(WAIT_LIMIT, echo).await.unwrap(), "Echo: still here");
    servers.shutdown().await;
}

#[tokio::test]
async fn arguments_it_refuses_are_an_error_the_model_can_read() {
    let servers = started(everything()).await;
    let error = call(&servers, "every_thing__echo", json!({"message": 7})).await.unwrap_err();
    assert!(error.0.contains("expected string, received number"), "{error}");
    servers.shutdown().await;
}

#[tokio::test]
async fn images_links_and_structures_become_text() {
    let servers = started(everything()).await;
    let image = call(&servers, "every_thing__get-tiny-image", json!({})).await.unwrap();
    assert!(image.contains("[an image (image/png), not shown]"), "{image}");
    let links = call(&servers, "every_thing__get-resource-links", json!({"count": 1})).await.unwrap();
    assert!(links.contains("at demo://resource/dynamic/"), "{links}");
    let weather =
        call(&servers, "every_thing__get-structured-content", json!({"location": "Chicago"})).await.unwrap();
    let weather: serde_json::Value = serde_json::from_str(&weather).unwrap();
    assert!(weather["temperature"].is_number(), "{weather}");
    servers.shutdown().await;
}

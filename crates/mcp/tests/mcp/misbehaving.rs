//! Servers that hang, flood, die and lie: each costs its own tools only.

use std::time::Duration;

use crate::support::{WAIT_LIMIT, call, echo, reached, scripted, states, stdio};
use hob_mcp::{McpServerOptions, McpServers, McpState, McpTransport, ToolPins};
use serde_json::json;
use tokio::time::timeout;

async fn started(servers: Vec<McpServerOptions>) -> McpServers {
    let servers = McpServers::start(servers, &ToolPins::default());
    servers.settled().await;
    servers
}

fn reason(servers: &McpServers) -> String {
    match &states(servers)[0] {
        McpState::Down { reason } => reason.clone(),
        state => panic!("it is {state:?}"),
    }
}

#[tokio::test]
async fn a_server_that_hangs_at_start_affects_its_own_tools_only() {
    let hanging = McpServerOptions { start_timeout: Duration::from_millis(300), ..scripted("bad", "hangs") };
    let servers = started(vec![hanging, scripted("good", "behaves")]).await;
    assert_eq!(reason(&servers), "it was not ready within 0.3 s");
    assert_eq!(states(&servers)[1], McpState::Ready);
    assert_eq!(echo(&servers, "good").await.unwrap(), "hello");
    assert!(servers.tools().iter().all(|tool| tool.spec().name.starts_with("good__")));
    servers.shutdown().await;
}

#[tokio::test]
async fn a_server_that_floods_stderr_works() {
    let servers = started(vec![scripted("loud", "floods_stderr")]).await;
    for _ in 0..3 {
        assert_eq!(echo(&servers, "loud").await.unwrap(), "hello");
    }
    servers.shutdown().await;
}

#[tokio::test]
async fn invalid_lines_on_stdout_are_skipped() {
    let servers = started(vec![scripted("odd", "talks_nonsense")]).await;
    for _ in 0..3 {
        assert_eq!(echo(&servers, "odd").await.unwrap(), "hello");
    }
    servers.shutdown().await;
}

#[tokio::test]
async fn a_dead_server_is_restarted_and_its_tools_report_it_meanwhile() {
    let dying = McpServerOptions { restart_delay: Duration::from_secs(1), ..scripted("mortal", "behaves") };
    let servers = started(vec![dying]).await;
    let first = call(&servers, "mortal__pid", json!({})).await.unwrap();
    let last_call = call(&servers, "mortal__die", json!({})).await.unwrap_err();
    assert_eq!(last_call.0, "the MCP server 'mortal' stopped before it answered");

    reached(&servers, |state| matches!(state, McpState::Down { .. })).await;
    assert_eq!(reason(&servers), "it exited (exit status: 3); last lines of its output: out of cheese");
    let meanwhile = echo(&servers, "mortal").await.unwrap_err();
    assert_eq!(meanwhile.0, "the MCP server 'mortal' is not running");

    reached(&servers, |state| *state == McpState::Ready).await;
    let second = call(&servers, "mortal__pid", json!({})).await.unwrap();
    assert_ne!(first, second);
    servers.shutdown().await;
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_an_error_at_once_and_the_server_continues() {
    let servers = started(vec![scripted("wordy", "behaves")]).await;
    let huge = timeout(WAIT_LIMIT, call(&servers, "wordy__huge", json!({}))).await;
    assert_eq!(huge.unwrap().unwrap_err().0, "the MCP server 'wordy' sent an answer longer than 4 MiB");
    assert_eq!(echo(&servers, "wordy").await.unwrap(), "hello");
    servers.shutdown().await;
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_cancelled_at_the_server() {
    let slow = McpServerOptions { call_timeout: Duration::from_millis(500), ..scripted("slow", "behaves") };
    let servers = started(vec![slow]).await;
    // On a busy machine the time of a call may be up before it is sent, and it is made again.
    let cancelled = async {
        loop {
            let late = call(&servers, "slow__wait", json!({})).await.unwrap_err();
            assert_eq!(late.0, "the MCP server 'slow' did not answer within 0.5 s");
            if is_cancelled(&servers, "slow__cancelled").await {
                return;
            }
        }
    };
    timeout(WAIT_LIMIT, cancelled).await.expect("the server hears of it");
    servers.shutdown().await;
}

#[tokio::test]
async fn a_call_that_is_dropped_is_cancelled_at_the_server() {
    let servers = started(vec![scripted("patient", "behaves")]).await;
    // On a busy machine a call may be dropped before it is sent, and is made again.
    let cancelled = async {
        loop {
            let dropped =
                timeout(Duration::from_millis(200), call(&servers, "patient__wait", json!({}))).await;
            assert!(dropped.is_err());
            if is_cancelled(&servers, "patient__cancelled").await {
                return;
            }
        }
    };
    timeout(WAIT_LIMIT, cancelled).await.expect("the server hears of it");
    servers.shutdown().await;
}

/// Whether the server has heard of a cancelled call.
async fn is_cancelled(servers: &McpServers, tool: &str) -> bool {
    call(servers, tool, json!({})).await.is_ok_and(|said| said != "(no output)")
}

#[tokio::test]
async fn a_refusal_has_the_text_of_the_server() {
    let servers = started(vec![scripted("strict", "behaves")]).await;
    let refused = call(&servers, "strict__refuse", json!({})).await.unwrap_err();
    assert_eq!(refused.0, "the MCP server 'strict' refused the call: not on a Sunday");
    let forgotten = call(&servers, "strict__forgotten", json!({})).await.unwrap_err();
    assert_eq!(forgotten.0, "no tool forgotten");
    let malformed = call(&servers, "strict__echo", json!([1])).await.unwrap_err();
    assert_eq!(malformed.0, "the arguments must be a JSON object");
    servers.shutdown().await;
}

#[tokio::test]
async fn a_server_that_ends_at_once_is_reported_with_its_output() {
    let servers = started(vec![scripted("short", "ends")]).await;
    assert_eq!(reason(&servers), "it exited (exit status: 1); last lines of its output: no licence found");
    servers.shutdown().await;
}

#[tokio::test]
async fn a_server_that_dies_of_the_newer_handshake_gets_the_older_one() {
    let servers = started(vec![scripted("old", "dies_of_news")]).await;
    assert_eq!(reason(&servers), "it exited (exit status: 1); last lines of its output: unheard of");
    reached(&servers, |state| *state == McpState::Ready).await;
    assert_eq!(echo(&servers, "old").await.unwrap(), "hello");
    servers.shutdown().await;
}

#[tokio::test]
async fn an_endless_list_of_tools_is_an_error() {
    let servers = started(vec![scripted("endless", "never_stops_listing")]).await;
    assert_eq!(reason(&servers), "it does not follow the protocol: it has more than 32 pages of tools");
    servers.shutdown().await;
}

#[tokio::test]
async fn a_missing_program_is_named() {
    let servers = started(vec![stdio("ghost", "/no/such/program", &[])]).await;
    assert_eq!(
        reason(&servers),
        "program '/no/such/program' not found (for a script, its interpreter may be missing)"
    );
    servers.shutdown().await;
}

#[tokio::test]
async fn a_missing_directory_is_named() {
    let mut options = scripted("lost", "behaves");
    if let McpTransport::Stdio { cwd, .. } = &mut options.transport {
        *cwd = Some("/no/such/directory".into());
    }
    let servers = started(vec![options]).await;
    assert_eq!(reason(&servers), "its working directory '/no/such/directory' does not exist");
    servers.shutdown().await;
}

#[tokio::test]
async fn a_server_runs_in_its_directory_with_its_environment() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path().canonicalize().unwrap();
    let mut options = scripted("placed", "behaves");
    if let McpTransport::Stdio { env, cwd, .. } = &mut options.transport {
        env.push(("GREETING".to_owned(), "good day".into()));
        *cwd = Some(directory.clone());
    }
    let servers = started(vec![options]).await;
    let about = call(&servers, "placed__about", json!({})).await.unwrap();
    assert_eq!(about, format!("good day from {}", directory.display()));
    servers.shutdown().await;
}

/// A server and its child, by their numbers.
#[cfg(target_os = "linux")]
async fn family(servers: &McpServers) -> [String; 2] {
    let parent = call(servers, "family__pid", json!({})).await.unwrap();
    let child = call(servers, "family__have_child", json!({})).await.unwrap();
    assert!(is_alive(&parent) && is_alive(&child));
    [parent, child]
}

#[cfg(target_os = "linux")]
fn is_alive(pid: &str) -> bool {
    // `pid (name) state ...`; `Z` is a zombie.
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    status.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Killed processes need a moment to end.
#[cfg(target_os = "linux")]
async fn are_gone(family: [String; 2]) {
    let gone = async {
        while family.iter().any(|pid| is_alive(pid)) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(WAIT_LIMIT, gone).await.expect("no process is left");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn after_shutdown_nothing_is_left_behind() {
    let servers = started(vec![scripted("family", "behaves")]).await;
    let family = family(&servers).await;
    let tool = crate::support::tool(&servers, "family__echo");
    servers.shutdown().await;
    are_gone(family).await;
    let after = tool.call(json!({"message": "anybody there?"})).await.unwrap_err();
    assert_eq!(after.0, "the MCP server 'family' is not running");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn dropping_the_servers_kills_them_and_their_children() {
    let servers = started(vec![scripted("family", "behaves")]).await;
    let family = family(&servers).await;
    drop(servers);
    are_gone(family).await;
}

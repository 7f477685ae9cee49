//! Servers over streamable HTTP: one made with the protocol's own library, and one that answers by the letter.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hob_mcp::{McpServerOptions, McpServers, McpState, McpTransport, ToolPins};
use hob_testkit::{FakeServer, Recorded, Reply, free_port};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::support::{WAIT_LIMIT, call, echo, reached, states};

fn http(url: &str) -> McpServerOptions {
    let headers = vec![("authorization".to_owned(), "Bearer open sesame".into())];
    let transport = McpTransport::Http { url: url.to_owned(), headers };
    McpServerOptions { restart_delay: Duration::from_millis(10), ..McpServerOptions::new("far", transport) }
}

async fn started(url: &str) -> McpServers {
    let servers = McpServers::start(vec![http(url)], &ToolPins::default());
    servers.settled().await;
    servers
}

struct Echo;

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(vec![Tool::new("echo", "Echoes.", serde_json::Map::new())]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let message =
            request.arguments.unwrap_or_default()["message"].as_str().unwrap_or_default().to_owned();
        Ok(CallToolResult::success(vec![ContentBlock::text(message)]).into())
    }
}

/// A server of the protocol's own library. It ends with its value.
async fn real_server() -> (String, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(|| Ok(Echo), sessions, StreamableHttpServerConfig::default());
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((socket, _)) = listener.accept().await {
            let service = TowerToHyperService::new(service.clone());
            connections.spawn(async move {
                let _ = http1::Builder::new().serve_connection(TokioIo::new(socket), service).await;
            });
        }
    });
    (url, serving)
}

#[tokio::test]
async fn the_tools_of_a_server_over_http_are_offered() {
    let (url, _serving) = real_server().await;
    let servers = started(&url).await;
    assert_eq!(states(&servers), [McpState::Ready]);
    assert_eq!(echo(&servers, "far").await.unwrap(), "hello");
    servers.shutdown().await;
}

/// A server with the protocol of 2025 and a session; `answer` answers the calls.
fn old_server(request: &Recorded, answer: impl Fn(&Value) -> Reply) -> Reply {
    if request.method != "POST" {
        return Reply::json(405, "");
    }
    let message: Value = serde_json::from_slice(&request.body).unwrap();
    let result = |result: Value| {
        Reply::json(200, json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string())
    };
    match message["method"].as_str().unwrap() {
        "initialize" => result(json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "old", "version": "1"},
        }))
        .header("mcp-session-id", "session-1"),
        "tools/list" => result(json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]})),
        "tools/call" => answer(&message),
        "server/discover" => Reply::json(400, "unknown method"),
        _ => Reply::json(202, ""),
    }
}

#[tokio::test]
async fn every_request_carries_the_configured_headers_and_the_session() {
    let server = FakeServer::start(|request| {
        old_server(request, |message| {
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": {"content": [{"type": "text", "text": "hi"}]}});
            Reply::sse(format!("event: message\ndata: {answer}\n\n"))
        })
    })
    .await;
    let servers = started(&server.url()).await;
    assert_eq!(echo(&servers, "far").await.unwrap(), "hi", "{:?}", states(&servers));
    servers.shutdown().await;
    let requests = server.requests();
    assert!(requests.iter().all(|request| request.header("authorization") == Some("Bearer open sesame")));
    let calls: Vec<&Recorded> =
        requests.iter().filter(|request| request.text().contains("tools/call")).collect();
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].header("mcp-session-id"), Some("session-1"));
    assert_eq!(calls[0].header("mcp-protocol-version"), Some("2025-06-18"));
    assert!(requests.iter().any(|request| request.method == "DELETE"), "the session is not ended");
}

#[tokio::test]
async fn a_server_that_does_not_answer_fails_that_call_only() {
    let server = FakeServer::start(|request| old_server(request, |_| Reply::silence())).await;
    let options = McpServerOptions { call_timeout: Duration::from_millis(200), ..http(&server.url()) };
    let servers = McpServers::start(vec![options], &ToolPins::default());
    servers.settled().await;
    let late = echo(&servers, "far").await.unwrap_err();
    assert_eq!(late.0, "the MCP server 'far' did not answer within 0.2 s");
    assert_eq!(states(&servers), [McpState::Ready]);
    servers.shutdown().await;
}

#[tokio::test]
async fn an_answer_over_the_limit_fails_that_call_only() {
    let server = FakeServer::start(|request| {
        old_server(request, |message| {
            let arguments = &message["params"]["arguments"];
            let text = "x".repeat(arguments["bytes"].as_u64().unwrap() as usize);
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": {"content": [{"type": "text", "text": text}]}});
            match arguments["as"].as_str().unwrap() {
                "events" => Reply::sse(format!(": ping\r\n\r\ndata: {answer}\r\n\r\n")),
                _ => Reply::json(200, answer.to_string()),
            }
        })
    })
    .await;
    let options = McpServerOptions { call_timeout: WAIT_LIMIT, ..http(&server.url()) };
    let servers = McpServers::start(vec![options], &ToolPins::default());
    servers.settled().await;
    let too_long = 5 << 20;
    for format in ["json", "events"] {
        let long = call(&servers, "far__echo", json!({"as": format, "bytes": too_long})).await;
        assert!(long.is_err(), "{format}");
        let short = call(&servers, "far__echo", json!({"as": format, "bytes": 3})).await;
        assert_eq!(short.unwrap(), "xxx", "{format}");
    }
    let long = call(&servers, "far__echo", json!({"as": "json", "bytes": too_long})).await.unwrap_err();
    assert!(long.0.ends_with("a message longer than 4 MiB"), "{long}");
    assert_eq!(states(&servers), [McpState::Ready]);
    servers.shutdown().await;
}

#[tokio::test]
async fn a_redirect_does_not_get_the_secrets() {
    let thief = FakeServer::replying(Reply::json(200, "{}")).await;
    let target = thief.url();
    let server = FakeServer::start(move |_| Reply::json(307, "").header("location", &target)).await;
    let servers = started(&server.url()).await;
    assert!(matches!(&states(&servers)[0], McpState::Down { .. }));
    servers.shutdown().await;
    assert_eq!(thief.requests(), []);
}

#[tokio::test]
async fn a_server_that_starts_later_is_found() {
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let servers = started(&format!("http://{address}")).await;
    assert!(matches!(&states(&servers)[0], McpState::Down { .. }));
    let listener = TcpListener::bind(address).await.unwrap();
    let _server = FakeServer::on(listener, |request| old_server(request, |_| Reply::json(500, "")));
    reached(&servers, |state| *state == McpState::Ready).await;
    let broken = call(&servers, "far__echo", json!({})).await.unwrap_err();
    assert!(broken.0.starts_with("the MCP server 'far' cannot be reached"), "{broken}");
    servers.shutdown().await;
}

#[tokio::test]
async fn an_invalid_mcp_address_is_reported() {
    let servers = started("ftp://somewhere").await;
    let reason =
        "'ftp://somewhere' is not the address of an MCP server: it must begin with http:// or https://";
    assert_eq!(states(&servers), [McpState::Down { reason: reason.to_owned() }]);
    servers.shutdown().await;
}

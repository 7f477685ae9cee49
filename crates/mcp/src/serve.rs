//! Serves Hob's tools to MCP clients. Knows nothing of what a tool does; the given tools decide which calls are permitted.

use std::sync::Arc;

use hob_core::{ToolCall, ToolDefinition, ToolResult, ToolRunner};
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer, ServerInitializeError, ServiceExt};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::stdio_pipes;
use serde_json::{Map, Value};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;

use crate::MAX_MESSAGE_BYTES;

/// Calls that run concurrently; more are refused.
const MAX_CALLS: usize = 32;

#[derive(Debug, Error)]
pub enum McpServeError {
    #[error("the client did not complete the MCP handshake")]
    Handshake(#[source] Box<ServerInitializeError>),
    #[error("the MCP server stopped unexpectedly")]
    Broken(#[source] tokio::task::JoinError),
}

/// Serves on stdin and stdout until the client disconnects. Nothing else may write to stdout.
pub async fn serve_stdio(
    tools: impl Fn() -> Arc<dyn ToolRunner> + Send + Sync + 'static,
    version: &str,
) -> Result<(), McpServeError> {
    let (stdin, stdout) = stdio_pipes();
    serve(tools, version, stdin, stdout).await
}

/// Serves on two streams until the client disconnects.
///
/// `tools` returns the tools for one request: the loop guard of an agent must not apply to a client, and tools may change. It is for
/// one connection, so what the client has read before can restrict them.
pub async fn serve(
    tools: impl Fn() -> Arc<dyn ToolRunner> + Send + Sync + 'static,
    version: &str,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), McpServeError> {
    let server = ToolServer { tools, version: version.to_owned(), slots: Semaphore::new(MAX_CALLS) };
    let transport = AsyncRwTransport::new_server(input, output).with_max_line_length(MAX_MESSAGE_BYTES);
    match server.serve(transport).await {
        Ok(running) => running.waiting().await.map(drop).map_err(McpServeError::Broken),
        // A client may disconnect before the handshake.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(McpServeError::Handshake(Box::new(error))),
    }
}

struct ToolServer<F> {
    tools: F,
    version: String,
    slots: Semaphore,
}

impl<F: Fn() -> Arc<dyn ToolRunner> + Send + Sync + 'static> ServerHandler for ToolServer<F> {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("hob", self.version.clone()))
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items((self.tools)().definitions().into_iter().map(announce).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let tools = (self.tools)();
        if !tools.definitions().iter().any(|tool| tool.name == request.name) {
            return Err(ErrorData::invalid_params(format!("there is no tool '{}'", request.name), None));
        }
        let Ok(_slot) = self.slots.try_acquire() else {
            return Ok(failure("too many concurrent calls; wait until some are done").into());
        };
        let call = ToolCall {
            id: context.id.to_string(),
            name: request.name.into_owned(),
            arguments: Value::Object(request.arguments.unwrap_or_default()).to_string(),
        };
        tokio::select! {
            result = tools.execute(&call) => Ok(answer(result).into()),
            // The client does not read this answer.
            () = context.ct.cancelled() => Ok(failure("the call was cancelled").into()),
        }
    }
}

fn announce(tool: ToolDefinition) -> Tool {
    let schema = match tool.parameters {
        Some(Value::Object(schema)) => schema,
        _ => Map::from_iter([("type".to_owned(), Value::from("object"))]),
    };
    Tool::new(tool.name, tool.description.unwrap_or_default(), schema)
}

fn answer(result: ToolResult) -> CallToolResult {
    if result.success {
        CallToolResult::success(vec![ContentBlock::text(result.content)])
    } else {
        failure(&result.content)
    }
}

fn failure(reason: &str) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(reason)])
}

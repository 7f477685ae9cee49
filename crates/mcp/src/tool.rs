//! One tool of a server. It stays valid when the server restarts.

use std::time::Duration;

use async_trait::async_trait;
use hob_core::{Tool, ToolError, ToolSpec};
use rmcp::model::{CallToolRequestParams, CallToolResponse};
use rmcp::service::ServiceError;
use serde_json::Value;
use tokio::sync::watch;

use crate::connection::ServerHandle;
use crate::{MAX_MESSAGE_BYTES, content};

pub struct McpTool {
    pub spec: ToolSpec,
    pub server: String,
    pub remote_name: String,
    pub call_timeout: Duration,
    /// The connection, while the server runs.
    pub handle: watch::Receiver<Option<ServerHandle>>,
}

#[async_trait]
impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, arguments: Value) -> Result<String, ToolError> {
        let server = &self.server;
        let mut request = CallToolRequestParams::new(self.remote_name.clone());
        request.arguments = match arguments {
            Value::Object(arguments) => Some(arguments),
            Value::Null => None,
            _ => return Err(ToolError::new("the arguments must be a JSON object")),
        };
        let Some(handle) = self.handle.borrow().clone() else {
            return Err(ToolError::new(format!("the MCP server '{server}' is not running")));
        };
        // Dropping the call notifies the server.
        let answered = tokio::select! {
            answered = handle.peer.call_tool_once(request) => answered,
            () = handle.too_long.notified() => {
                let limit = MAX_MESSAGE_BYTES >> 20;
                return Err(ToolError::new(format!("the MCP server '{server}' sent an answer longer than {limit} MiB")));
            }
            () = tokio::time::sleep(self.call_timeout) => {
                let seconds = self.call_timeout.as_secs_f32();
                return Err(ToolError::new(format!("the MCP server '{server}' did not answer within {seconds} s")));
            }
        };
        match answered {
            Ok(CallToolResponse::Complete(result)) => content::as_text(result),
            Ok(_) => Err(ToolError::new("the tool asks for input that Hob does not support")),
            Err(error) => Err(self.explain(&error)),
        }
    }
}

impl McpTool {
    fn explain(&self, error: &ServiceError) -> ToolError {
        let server = &self.server;
        ToolError::new(match error {
            ServiceError::McpError(refusal) => {
                format!("the MCP server '{server}' refused the call: {}", refusal.message)
            }
            ServiceError::TransportClosed => format!("the MCP server '{server}' stopped before it answered"),
            ServiceError::TransportSend(error) => {
                format!("the MCP server '{server}' cannot be reached: {}", error.error)
            }
            other => format!("the MCP server '{server}' sent an invalid answer: {other}"),
        })
    }
}

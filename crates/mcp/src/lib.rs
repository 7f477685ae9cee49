//! The Model Context Protocol, client and server: [`McpServers`] offers the tools of MCP servers as [`hob_core::Tool`],
//! [`serve_stdio`] serves Hob's tools to MCP clients. Knows nothing of agents, nor of which caller may use which tool.

mod configured_servers;
mod connection;
mod content;
mod error;
mod http;
mod http_client;
mod names;
mod options;
mod pins;
mod process;
mod serve;
mod status;
mod supervisor;
mod tool;
mod tool_list;
mod transport_guard;

pub use configured_servers::McpServers;
pub use error::McpError;
pub use options::{McpServerOptions, McpTransport};
pub use pins::{ToolChange, ToolPins, WithheldTool};
pub use serve::{McpServeError, serve, serve_stdio};
pub use status::{McpServerStatus, McpState};

/// The longest message that is read.
const MAX_MESSAGE_BYTES: usize = 4 << 20;

/// Shortens a text for one log line.
fn shortened(text: &str) -> String {
    const MAX_CHARS: usize = 300;
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

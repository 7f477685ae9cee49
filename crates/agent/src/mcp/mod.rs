//! The Model Context Protocol, both ways: tools of other people's servers become ours ([`McpServers`]), and ours are served to
//! other people's programs ([`serve_stdio`]). Knows nothing of agents; who may use which tool is the tool box's decision.

mod catalog;
mod connection;
mod content;
mod error;
mod http;
mod names;
mod options;
mod pins;
mod process;
mod serve;
mod servers;
mod supervise;
mod tool;
mod wire;

pub use error::McpError;
pub use options::{McpServerOptions, McpTransport};
pub use pins::{ToolChange, ToolPins, WithheldTool};
pub use serve::{McpServeError, serve, serve_stdio};
pub use servers::{McpServerStatus, McpServers, McpState};

/// The longest message that is read from the other side.
const MAX_MESSAGE_BYTES: usize = 4 << 20;

/// Text from the other side, short enough for one line of a log.
fn shortened(text: &str) -> String {
    const MAX_CHARS: usize = 300;
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

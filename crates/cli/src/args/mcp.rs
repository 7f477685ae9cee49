//! Arguments of `hob mcp`.

use clap::Parser;

/// Run Hob's tools as an MCP server (stdio)
///
/// For programs that use the Model Context Protocol and start their own servers. Anyone who can start a program on this
/// machine can use all tools. Tools of configured MCP servers are not included.
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "{ \"mcpServers\": { \"hob\": { \"command\": \"hob\", \"args\": [\"mcp\"] } } }"
})]
pub struct McpArgs {}

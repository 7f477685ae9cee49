//! `hob mcp` as it is typed.

use clap::Parser;

/// Serve the tools of the house to an MCP client, over stdin and stdout
///
/// For programs that speak the Model Context Protocol and start their servers themselves. Whoever can start a program on
/// this machine may use all tools. The tools of configured MCP servers are not passed on.
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "{ \"mcpServers\": { \"hob\": { \"command\": \"hob\", \"args\": [\"mcp\"] } } }"
})]
pub struct McpArgs {}

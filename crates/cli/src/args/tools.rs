//! Arguments of `hob tools`.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum ToolsCommand {
    /// List the built-in tools and the tools of configured MCP servers
    #[command(after_help = examples! {
        "hob tools list"
        "hob tools list --json | jq -r '.[].name'"
    })]
    List {
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Show the description and arguments of a tool
    #[command(after_help = examples! {
        "hob tools info calculator"
    })]
    Info {
        /// Tool name from 'hob tools list'
        name: String,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Run a tool once, as an agent would
    ///
    /// Prints the tool's output. If the tool fails, the exit code is 1 and the reason is printed on stderr.
    #[command(after_help = examples! {
        "hob tools run calculator '{\"expression\": \"17 * 23\"}'"
        "hob tools run current_time"
    })]
    Run {
        /// Tool name from 'hob tools list'
        name: String,
        /// Arguments, as one JSON object
        #[arg(default_value = "{}")]
        arguments: String,
    },
    /// Accept the current tools of an MCP server
    ///
    /// Hob remembers the tools that a server had when it was first seen. Tools that were added or changed since then are not
    /// offered to models until you accept them. A running server applies this within a few seconds.
    #[command(after_help = examples! {
        "hob tools accept files"
    })]
    Accept {
        /// Server name, as in the section [mcp.servers.NAME]
        server: String,
    },
}

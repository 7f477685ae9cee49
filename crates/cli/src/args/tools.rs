//! `hob tools` as it is typed.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum ToolsCommand {
    /// List the tools: those of the house and those of the configured MCP servers
    List {
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Show what a tool does and what arguments it takes
    Info {
        /// The tool, as 'hob tools list' names it
        name: String,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Run a tool once, as an agent would
    ///
    /// Prints what the tool says. Ends with 1 when it fails, and then says why on stderr.
    #[command(after_help = examples! {
        "hob tools run calculator '{\"expression\": \"17 * 23\"}'"
        "hob tools run current_time"
    })]
    Run {
        /// The tool, as 'hob tools list' names it
        name: String,
        /// Its arguments, as one JSON object
        #[arg(default_value = "{}")]
        arguments: String,
    },
    /// Accept the tools that an MCP server has now
    ///
    /// Hob remembers the tools that a server had when it was first seen. Tools that are new or described differently later are not
    /// offered to a model until you accept them. A server that is running notices within a few seconds.
    #[command(after_help = examples! {
        "hob tools accept files"
    })]
    Accept {
        /// The server, as the section [mcp.servers.NAME] names it
        server: String,
    },
}

//! Why the tools of a server are not available. The messages follow the name of the server.

use std::error::Error as _;
use std::path::PathBuf;
use std::time::Duration;

use hob_process::ChildStartError;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum McpError {
    #[error(transparent)]
    Start(#[from] ChildStartError),

    #[error("its working directory '{}' does not exist", cwd.display())]
    NoDirectory { cwd: PathBuf },

    #[error("it exited ({status}){}", last_lines(stderr))]
    Ended {
        status: String,
        /// The last lines it wrote.
        stderr: String,
    },

    #[error("it was not ready within {} s{}", after.as_secs_f32(), last_lines(stderr))]
    NotReady { after: Duration, stderr: String },

    #[error("'{url}' is not the address of an MCP server: {reason}")]
    Address { url: String, reason: String },

    #[error("the header '{name}' is not valid; check its name and its value")]
    Header { name: String },

    #[error("it does not follow the protocol: {reason}")]
    Protocol { reason: String },

    #[error("it cannot be reached: {reason}")]
    Unreachable { reason: String },

    #[error("it closed the connection")]
    Closed,
}

impl McpError {
    /// The message with all causes.
    pub fn in_full(&self) -> String {
        let causes = std::iter::successors(self.source(), |cause| (*cause).source());
        causes.fold(self.to_string(), |message, cause| format!("{message}: {cause}"))
    }
}

fn last_lines(stderr: &str) -> String {
    if stderr.is_empty() { String::new() } else { format!("; last lines of its output: {stderr}") }
}

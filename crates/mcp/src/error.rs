//! Why a server's tools are not there.

use std::error::Error as _;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

#[derive(Debug, Error)]
pub enum McpError {
    #[error("there is no program '{}' (or, if it is a script, none to run it with)", command.display())]
    Missing { command: PathBuf },

    #[error("'{}' may not be run; is it executable?", command.display())]
    NotExecutable { command: PathBuf },

    #[error("'{}' cannot be started", command.display())]
    Spawn {
        command: PathBuf,
        #[source]
        source: std::io::Error,
    },

    #[error("there is no directory '{}' to run it in", cwd.display())]
    NoDirectory { cwd: PathBuf },

    #[error("it ended ({status}){}", last_words(stderr))]
    Ended {
        status: String,
        /// The last lines it wrote.
        stderr: String,
    },

    #[error("it was not ready within {} s{}", after.as_secs_f32(), last_words(stderr))]
    NotReady { after: Duration, stderr: String },

    #[error("'{url}' is no address of an MCP server: {reason}")]
    Address { url: String, reason: String },

    #[error("the header '{name}' cannot be sent; look at its name and its value")]
    Header { name: String },

    #[error("it does not speak the protocol as expected: {reason}")]
    Protocol { reason: String },

    #[error("it cannot be reached: {reason}")]
    Unreachable { reason: String },

    #[error("the connection to it was closed")]
    Closed,
}

impl McpError {
    /// The whole story, down to its first cause.
    pub fn in_full(&self) -> String {
        let causes = std::iter::successors(self.source(), |cause| (*cause).source());
        causes.fold(self.to_string(), |story, cause| format!("{story}: {cause}"))
    }
}

fn last_words(stderr: &str) -> String {
    if stderr.is_empty() { String::new() } else { format!("; its last words: {stderr}") }
}

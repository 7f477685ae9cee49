//! The options of a server.

use std::path::PathBuf;
use std::time::Duration;

use hob_core::Reach;
use secrecy::SecretString;

/// A server to connect to.
#[derive(Debug, Clone)]
pub struct McpServerOptions {
    /// The prefix of its tools.
    pub name: String,
    pub transport: McpTransport,
    /// The reach of its tools. What the server says about itself is ignored.
    pub reach: Reach,
    /// The longest wait for an answer.
    pub call_timeout: Duration,
    /// The longest wait for it to be ready.
    pub start_timeout: Duration,
    /// The first delay before a restart. It doubles with every failure.
    pub restart_delay: Duration,
}

impl McpServerOptions {
    pub fn new(name: impl Into<String>, transport: McpTransport) -> Self {
        McpServerOptions {
            name: name.into(),
            transport,
            reach: Reach::Act,
            call_timeout: Duration::from_secs(30),
            start_timeout: Duration::from_secs(20),
            restart_delay: Duration::from_secs(1),
        }
    }
}

/// How to reach a server.
#[derive(Debug, Clone)]
pub enum McpTransport {
    /// A child process, over its stdin and stdout.
    Stdio {
        /// A path, or a name in `PATH`.
        command: PathBuf,
        args: Vec<String>,
        /// Added to the environment, which has none of Hob's own keys.
        env: Vec<(String, SecretString)>,
        /// The working directory; `None` for that of Hob.
        cwd: Option<PathBuf>,
    },
    /// A remote server, over streamable HTTP.
    Http {
        url: String,
        /// Sent with every request, such as `authorization`.
        headers: Vec<(String, SecretString)>,
    },
}

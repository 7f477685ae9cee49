//! What is known of a server before it is started.

use std::path::PathBuf;
use std::time::Duration;

use hob_core::Reach;
use secrecy::SecretString;

/// A server whose tools are to be used.
#[derive(Debug, Clone)]
pub struct McpServerOptions {
    /// What its tools' names begin with.
    pub name: String,
    pub transport: McpTransport,
    /// How far its tools reach. What a server says of itself is not asked.
    pub reach: Reach,
    /// The longest wait for an answer.
    pub call_timeout: Duration,
    /// The longest wait for it to be ready.
    pub start_timeout: Duration,
    /// The wait before a server that died is started again. It doubles with every death in short order.
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

/// The way to a server.
#[derive(Debug, Clone)]
pub enum McpTransport {
    /// A program that is run as our child and spoken to through its stdin and stdout.
    Stdio {
        /// A path, or a name to be found in `PATH`.
        command: PathBuf,
        args: Vec<String>,
        /// Added to our environment, of which our own keys are left out.
        env: Vec<(String, SecretString)>,
        /// Where it runs; `None` for where we run.
        cwd: Option<PathBuf>,
    },
    /// A server that runs elsewhere, spoken to by streamable HTTP.
    Http {
        url: String,
        /// Sent with every request, such as `authorization`.
        headers: Vec<(String, SecretString)>,
    },
}

//! All configured servers, each with its own supervisor. They do not affect each other.

use std::sync::Arc;

use hob_core::Tool;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::McpServerOptions;
use crate::names::prefixes;
use crate::pins::ToolPins;
use crate::status::{McpServerStatus, McpState};
use crate::supervisor::{McpSupervisor, StatusSlot};

/// All servers. Dropping this kills child processes; [`Self::shutdown`] stops them properly.
pub struct McpServers {
    status: watch::Receiver<Vec<McpServerStatus>>,
    stop: CancellationToken,
    supervisors: JoinSet<()>,
}

impl McpServers {
    /// Starts the servers in the background, and records their tools in `pins`. Must be called inside a Tokio runtime.
    pub fn start(servers: Vec<McpServerOptions>, pins: &ToolPins) -> Self {
        let starting = servers
            .iter()
            .map(|server| McpServerStatus {
                name: server.name.clone(),
                state: McpState::Starting,
                tools: Vec::new(),
                withheld: Vec::new(),
            })
            .collect();
        let (board, status) = watch::channel(starting);
        let board = Arc::new(board);
        let stop = CancellationToken::new();
        let mut supervisors = JoinSet::new();
        let prefixes = prefixes(servers.iter().map(|server| server.name.as_str()));
        for (index, (options, prefix)) in servers.into_iter().zip(prefixes).enumerate() {
            let supervisor = McpSupervisor::new(
                options,
                prefix,
                pins.clone(),
                StatusSlot { board: Arc::clone(&board), index },
            );
            supervisors.spawn(supervisor.run(stop.clone()));
        }
        McpServers { status, stop, supervisors }
    }

    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.status.borrow().iter().flat_map(|server| server.tools.iter().cloned()).collect()
    }

    /// The current status of the servers, in the order of the options.
    pub fn status(&self) -> Vec<McpServerStatus> {
        self.status.borrow().clone()
    }

    /// A receiver of the current and future status.
    pub fn changes(&self) -> watch::Receiver<Vec<McpServerStatus>> {
        self.status.clone()
    }

    /// Waits until every server is ready or has failed once. The start timeouts limit the wait.
    pub async fn settled(&self) {
        let mut status = self.status.clone();
        // It fails only when all supervisors have ended.
        let _ =
            status.wait_for(|servers| servers.iter().all(|server| server.state != McpState::Starting)).await;
    }

    /// Closes the connections, stops the child processes, and waits for their end.
    pub async fn shutdown(mut self) {
        self.stop.cancel();
        while let Some(ended) = self.supervisors.join_next().await {
            if let Err(error) = ended {
                tracing::error!(
                    %error,
                    "the supervisor of an MCP server panicked. Report this bug with the panic message on \
                     standard error"
                );
            }
        }
    }
}

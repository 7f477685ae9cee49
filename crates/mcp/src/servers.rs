//! All configured servers, each with its own supervisor. They do not affect each other.

use std::sync::Arc;

use hob_core::Tool;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::McpServerOptions;
use crate::names::prefixes;
use crate::pins::{ToolPins, WithheldTool};
use crate::supervisor::{McpSupervisor, StatusSlot};

/// How a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpState {
    /// It has not been ready yet, and has not failed yet.
    Starting,
    Ready,
    /// It failed or died, and is started again after a while.
    Down {
        reason: String,
    },
    Stopped,
}

/// What is known of a server.
#[derive(Clone)]
pub struct McpServerStatus {
    pub name: String,
    pub state: McpState,
    /// The tools it has, or had when it last ran.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Tools that are new or differ from what the server had when it was first seen. They are not offered.
    pub withheld: Vec<WithheldTool>,
}

/// The servers. Those that are our children are killed when this is dropped; [`Self::shutdown`] lets them end properly.
pub struct McpServers {
    status: watch::Receiver<Vec<McpServerStatus>>,
    stop: CancellationToken,
    supervisors: JoinSet<()>,
}

impl McpServers {
    /// Starts them all in the background, and remembers which tools they have in `pins`. Must be called inside a Tokio runtime.
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

    /// The tools there are now.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.status.borrow().iter().flat_map(|server| server.tools.iter().cloned()).collect()
    }

    /// How the servers are now, in the order they were given.
    pub fn status(&self) -> Vec<McpServerStatus> {
        self.status.borrow().clone()
    }

    /// How the servers are, now and from now on.
    pub fn changes(&self) -> watch::Receiver<Vec<McpServerStatus>> {
        self.status.clone()
    }

    /// Waits until every server is ready or has failed once. The start time-outs bound it.
    pub async fn settled(&self) {
        let mut status = self.status.clone();
        // The only failure is that all supervisors are gone, and then nothing changes any more.
        let _ =
            status.wait_for(|servers| servers.iter().all(|server| server.state != McpState::Starting)).await;
    }

    /// Ends the connections and the servers that are our children, and returns when they are gone.
    pub async fn shutdown(mut self) {
        self.stop.cancel();
        while let Some(ended) = self.supervisors.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "the supervisor of an MCP server failed");
            }
        }
    }
}

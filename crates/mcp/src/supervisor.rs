//! Supervises one server: starts it, lists its tools, and restarts it when it ends.

use std::sync::Arc;
use std::time::Duration;

use hob_core::{Backoff, Effect, Reach};
use hob_process::{Supervised, supervise};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::connection::{Connection, Handshake, ServerHandle};
use crate::pins::{ToolPins, WithheldTool};
use crate::tool_list::{CheckedTools, ToolList};
use crate::{McpError, McpServerOptions, McpServerStatus, McpState, McpTransport, shortened};

/// The longest delay before a restart.
const LONGEST_DELAY: Duration = Duration::from_secs(60);

/// The shortest pause between two lists of tools.
const RELIST_PAUSE: Duration = Duration::from_millis(250);

/// How often the tools of a server with withheld tools are listed.
const WITHHELD_PAUSE: Duration = Duration::from_secs(10);

/// The number of tools in a log line.
const MAX_LOGGED: usize = 10;

/// Owns a server from its first start until shutdown.
pub struct McpSupervisor {
    options: McpServerOptions,
    tool_list: ToolList,
    handle: watch::Sender<Option<ServerHandle>>,
    slot: StatusSlot,
    handshake: Handshake,
}

/// The shared status of all servers, and the index of this one.
pub struct StatusSlot {
    pub board: Arc<watch::Sender<Vec<McpServerStatus>>>,
    pub index: usize,
}

impl McpSupervisor {
    pub fn new(options: McpServerOptions, prefix: String, pins: ToolPins, slot: StatusSlot) -> Self {
        let (sender, handle) = watch::channel(None);
        // A server that may act may send, and a remote server gets all arguments.
        let is_remote = matches!(options.transport, McpTransport::Http { .. });
        let sends = options.reach == Reach::Act || is_remote;
        let tool_list = ToolList {
            server: options.name.clone(),
            prefix,
            reach: options.reach,
            effect: if sends { Effect::Sends } else { Effect::None },
            call_timeout: options.call_timeout,
            handle,
            pins,
        };
        McpSupervisor { options, tool_list, handle: sender, slot, handshake: Handshake::NewestFirst }
    }

    pub async fn run(self, stop: CancellationToken) {
        let backoff = Backoff { first: self.options.restart_delay, longest: LONGEST_DELAY };
        supervise(self, backoff, &stop).await;
    }

    /// Updates the list of tools until the server ends.
    async fn attend(&self, connection: &mut Connection) -> McpError {
        let changed = connection.tools_changed();
        loop {
            tokio::select! {
                reason = connection.ended() => return reason,
                () = changed.notified() => {}
                // The owner may have accepted them.
                () = sleep(WITHHELD_PAUSE), if self.withholds() => {}
            }
            match timeout(self.options.start_timeout, connection.tools()).await {
                Ok(Ok(tools)) => self.publish_tools(self.tool_list.tools(tools)),
                Ok(Err(error)) => {
                    tracing::warn!(
                        server = %self.options.name,
                        %error,
                        "the tools of an MCP server cannot be listed; Hob keeps the last list"
                    )
                }
                Err(_) => {
                    tracing::warn!(
                        server = %self.options.name,
                        "an MCP server did not list its tools in time; Hob keeps the last list"
                    )
                }
            }
            sleep(RELIST_PAUSE).await;
        }
    }

    fn report(&self, reason: &McpError) {
        let reason = reason.in_full();
        tracing::warn!(
            server = %self.options.name,
            %reason,
            "an MCP server does not answer; Hob tries again"
        );
        // The tools stay and return an error, because a running agent may still call them.
        self.publish(McpState::Down { reason }, None);
    }

    fn withholds(&self) -> bool {
        let board = self.slot.board.borrow();
        board.get(self.slot.index).is_some_and(|status| !status.withheld.is_empty())
    }

    /// Publishes the tools of a ready server. Each set of withheld tools is logged once.
    fn publish_tools(&self, checked: CheckedTools) {
        let before = self.slot.board.borrow().get(self.slot.index).map(|status| status.withheld.clone());
        if !checked.withheld.is_empty() && before.as_ref() != Some(&checked.withheld) {
            let server = &self.options.name;
            let described =
                |tool: &WithheldTool| format!("{} ({})", shortened(&tool.name), tool.change.as_str());
            let tools: Vec<String> = checked.withheld.iter().take(MAX_LOGGED).map(described).collect();
            tracing::warn!(
                %server,
                count = checked.withheld.len(),
                tools = %tools.join(", "),
                "an MCP server changed its tools, and Hob withholds them. To offer them, run 'hob tools \
                 accept {server}'"
            );
        }
        self.publish(McpState::Ready, Some(checked));
    }

    fn publish(&self, state: McpState, checked: Option<CheckedTools>) {
        self.slot.board.send_modify(|board| {
            if let Some(status) = board.get_mut(self.slot.index) {
                status.state = state;
                if let Some(CheckedTools { offered, withheld }) = checked {
                    status.tools = offered;
                    status.withheld = withheld;
                }
            }
        });
    }
}

impl Supervised for McpSupervisor {
    async fn run(&mut self, stop: &CancellationToken) -> Duration {
        // Boxed, because the future of a handshake is large.
        let opening = Box::pin(Connection::open(&self.options, self.handshake));
        let opened = stop.run_until_cancelled(opening).await;
        let (mut connection, tools) = match opened {
            Some(Ok(opened)) => opened,
            Some(Err(reason)) => {
                self.report(&reason);
                self.handshake = other(self.handshake);
                return Duration::ZERO;
            }
            None => return Duration::ZERO,
        };
        let ready_since = Instant::now();
        self.handle.send_replace(Some(connection.handle()));
        self.publish_tools(self.tool_list.tools(tools));
        let ended = stop.run_until_cancelled(self.attend(&mut connection)).await;
        self.handle.send_replace(None);
        if let Some(reason) = &ended {
            self.report(reason);
        }
        connection.close().await;
        ready_since.elapsed()
    }
}

impl Drop for McpSupervisor {
    fn drop(&mut self) {
        self.publish(McpState::Stopped, Some(CheckedTools::default()));
    }
}

/// A server that fails on one handshake may accept the other.
fn other(handshake: Handshake) -> Handshake {
    match handshake {
        Handshake::NewestFirst => Handshake::Initialize,
        Handshake::Initialize => Handshake::NewestFirst,
    }
}

//! The life of one server: started, listed, watched, started again when it dies.

use std::sync::Arc;
use std::time::Duration;

use hob_core::{Backoff, Effect, Reach};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::connection::{Connection, Greeting, Line};
use crate::pins::{ToolPins, WithheldTool};
use crate::tool_list::{Catalog, Sorted};
use crate::{McpError, McpServerOptions, McpServerStatus, McpState, McpTransport, shortened};

/// The longest wait before a dead server is started again.
const LONGEST_DELAY: Duration = Duration::from_secs(60);

/// A server that tells of new tools all the time is asked for them this often.
const RELIST_PAUSE: Duration = Duration::from_millis(250);

/// How often a server whose tools are withheld is asked for them again.
const WITHHELD_PAUSE: Duration = Duration::from_secs(10);

/// Tools that one line of the log names.
const MOST_NAMED: usize = 10;

/// Owns a server from its first start to the end.
pub struct Supervisor {
    options: McpServerOptions,
    catalog: Catalog,
    line: watch::Sender<Option<Line>>,
    post: Post,
}

/// Where everybody sees how all servers are, and which of them is this one.
pub struct Post {
    pub board: Arc<watch::Sender<Vec<McpServerStatus>>>,
    pub index: usize,
}

impl Supervisor {
    pub fn new(options: McpServerOptions, prefix: String, pins: ToolPins, post: Post) -> Self {
        let (tell, line) = watch::channel(None);
        // What a server does is not known: one that may act may send, and one elsewhere is sent every argument.
        let is_elsewhere = matches!(options.transport, McpTransport::Http { .. });
        let sends = options.reach == Reach::Act || is_elsewhere;
        let catalog = Catalog {
            server: options.name.clone(),
            prefix,
            reach: options.reach,
            effect: if sends { Effect::Sends } else { Effect::None },
            call_timeout: options.call_timeout,
            line,
            pins,
        };
        Supervisor { options, catalog, line: tell, post }
    }

    pub async fn run(self, stop: CancellationToken) {
        let backoff = Backoff { first: self.options.restart_delay, longest: LONGEST_DELAY };
        let mut delays = backoff.delays();
        let mut greeting = Greeting::NewestFirst;
        loop {
            let opened = tokio::select! {
                () = stop.cancelled() => break,
                opened = Connection::open(&self.options, greeting) => opened,
            };
            match opened {
                Ok((mut connection, tools)) => {
                    let ready_since = Instant::now();
                    self.line.send_replace(Some(connection.line()));
                    self.post_tools(self.catalog.tools(tools));
                    let reason = tokio::select! {
                        () = stop.cancelled() => None,
                        reason = self.attend(&mut connection) => Some(reason),
                    };
                    self.line.send_replace(None);
                    if let Some(reason) = &reason {
                        self.report(reason);
                    }
                    connection.close().await;
                    delays.after_running_for(ready_since.elapsed());
                    if reason.is_none() {
                        break;
                    }
                }
                Err(reason) => {
                    self.report(&reason);
                    greeting = other(greeting);
                }
            }
            tokio::select! {
                () = stop.cancelled() => break,
                () = sleep(delays.next_delay()) => {}
            }
        }
        self.post(McpState::Stopped, Some(Sorted::default()));
    }

    /// Keeps the list of tools true until the server is gone.
    async fn attend(&self, connection: &mut Connection) -> McpError {
        let changed = connection.tools_changed();
        loop {
            tokio::select! {
                reason = connection.ended() => return reason,
                () = changed.notified() => {}
                // The owner may have accepted them meanwhile.
                () = sleep(WITHHELD_PAUSE), if self.withholds() => {}
            }
            match timeout(self.options.start_timeout, connection.tools()).await {
                Ok(Ok(tools)) => self.post_tools(self.catalog.tools(tools)),
                Ok(Err(error)) => {
                    tracing::warn!(server = %self.options.name, %error, "the tools of an MCP server stay as they were")
                }
                Err(_) => {
                    tracing::warn!(server = %self.options.name, "an MCP server is slow to list its tools; they stay as they were")
                }
            }
            sleep(RELIST_PAUSE).await;
        }
    }

    fn report(&self, reason: &McpError) {
        let reason = reason.in_full();
        tracing::warn!(server = %self.options.name, %reason, "an MCP server is not running");
        // Its tools stay: they say that it does not run, and a model that was told of them a moment ago can read that.
        self.post(McpState::Down { reason }, None);
    }

    fn withholds(&self) -> bool {
        let board = self.post.board.borrow();
        board.get(self.post.index).is_some_and(|status| !status.withheld.is_empty())
    }

    /// The server is ready and has these tools. The owner is told once of each set that is withheld.
    fn post_tools(&self, sorted: Sorted) {
        let before = self.post.board.borrow().get(self.post.index).map(|status| status.withheld.clone());
        if !sorted.withheld.is_empty() && before.as_ref() != Some(&sorted.withheld) {
            let server = &self.options.name;
            let described =
                |tool: &WithheldTool| format!("{} ({})", shortened(&tool.name), tool.change.as_str());
            let tools: Vec<String> = sorted.withheld.iter().take(MOST_NAMED).map(described).collect();
            tracing::warn!(
                %server, count = sorted.withheld.len(), tools = %tools.join(", "),
                "an MCP server changed its tools; they are not offered until 'hob tools accept' names the server"
            );
        }
        self.post(McpState::Ready, Some(sorted));
    }

    fn post(&self, state: McpState, sorted: Option<Sorted>) {
        self.post.board.send_modify(|board| {
            if let Some(status) = board.get_mut(self.post.index) {
                status.state = state;
                if let Some(Sorted { offered, withheld }) = sorted {
                    status.tools = offered;
                    status.withheld = withheld;
                }
            }
        });
    }
}

/// A server that died of one greeting may bear the other.
fn other(greeting: Greeting) -> Greeting {
    match greeting {
        Greeting::NewestFirst => Greeting::Initialize,
        Greeting::Initialize => Greeting::NewestFirst,
    }
}

//! One connection to one server, from the handshake to the close.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, PaginatedRequestParams, ProtocolVersion,
    SubscriptionFilter, Tool,
};
use rmcp::service::{ClientInitializeError, NotificationContext, Peer, RunningService, ServiceError};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, RoleClient};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::process::{ServerCommand, ServerProcess};
use crate::transport_guard::{GuardedTransport, LineLengthWatch};
use crate::{MAX_MESSAGE_BYTES, McpError, McpServerOptions, McpTransport, http, shortened};

/// The pages of a tool list that are read.
const MAX_PAGES: usize = 32;

/// How long a server may take to end after its connection was lost: a moment, but on a busy machine a process ends late. It is longer
/// than the wait for the rest of its output.
const END_TIMEOUT: Duration = Duration::from_secs(3);

/// `rmcp` completes pending work before it ends.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// Which handshake comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handshake {
    /// The stateless protocol of 2026, then the older one.
    NewestFirst,
    /// The older protocol, for servers that fail on the newer handshake.
    Initialize,
}

/// What tools need to call a running server.
#[derive(Clone)]
pub struct ServerHandle {
    pub peer: Peer<RoleClient>,
    /// Notified when a message was too long to be read.
    pub too_long: Arc<Notify>,
}

/// A connected server. Dropping it kills a child process.
pub struct Connection {
    service: RunningService<RoleClient, ClientCallbacks>,
    process: Option<ServerProcess>,
    signals: ConnectionSignals,
    subscription: JoinSet<()>,
}

/// The signals of a connection.
#[derive(Clone, Default)]
struct ConnectionSignals {
    /// Cancelled when the connection ends, or to end it.
    down: CancellationToken,
    tools_changed: Arc<Notify>,
    too_long: Arc<Notify>,
}

impl Connection {
    /// Starts the server or connects to it, and completes the handshake.
    pub async fn open(
        options: &McpServerOptions,
        handshake: Handshake,
    ) -> Result<(Self, Vec<Tool>), McpError> {
        let signals = ConnectionSignals::default();
        let (connected, process) = match &options.transport {
            McpTransport::Stdio { command, args, env, cwd } => {
                let program = ServerCommand { command, args, env, cwd: cwd.as_deref() };
                let (process, stdin, stdout) = ServerProcess::spawn(&options.name, program)?;
                let lines = LineLengthWatch::new(stdout, MAX_MESSAGE_BYTES, Arc::clone(&signals.too_long));
                let transport =
                    AsyncRwTransport::new_client(lines, stdin).with_max_line_length(MAX_MESSAGE_BYTES);
                let connected = timeout(options.start_timeout, connect(transport, handshake, &signals)).await;
                (connected, Some(process))
            }
            McpTransport::Http { url, headers } => {
                let transport = http::transport(url, headers)?;
                (timeout(options.start_timeout, connect(transport, handshake, &signals)).await, None)
            }
        };
        match (connected, process) {
            (Ok(Ok((service, tools))), process) => {
                let mut connection = Connection { service, process, signals, subscription: JoinSet::new() };
                connection.subscribe();
                Ok((connection, tools))
            }
            // The exit status is more helpful than a connection error.
            (Ok(Err(error @ (McpError::Unreachable { .. } | McpError::Closed))), Some(mut process)) => {
                Err(timeout(END_TIMEOUT, process.ended()).await.unwrap_or(error))
            }
            (Ok(Err(error)), _) => Err(error),
            (Err(_), process) => Err(McpError::NotReady {
                after: options.start_timeout,
                stderr: process.map(|process| process.last_lines()).unwrap_or_default(),
            }),
        }
    }

    pub fn handle(&self) -> ServerHandle {
        ServerHandle { peer: self.service.peer().clone(), too_long: Arc::clone(&self.signals.too_long) }
    }

    /// Waits until the server ends, and returns why.
    pub async fn ended(&mut self) -> McpError {
        let Some(process) = &mut self.process else {
            self.signals.down.cancelled().await;
            return McpError::Closed;
        };
        tokio::select! {
            ended = process.ended() => return ended,
            () = self.signals.down.cancelled() => {}
        }
        timeout(END_TIMEOUT, process.ended()).await.unwrap_or(McpError::Closed)
    }

    /// Notified when the server reports changed tools.
    pub fn tools_changed(&self) -> Arc<Notify> {
        Arc::clone(&self.signals.tools_changed)
    }

    pub async fn tools(&self) -> Result<Vec<Tool>, McpError> {
        list_tools(self.service.peer()).await
    }

    /// Closes the connection, and stops a child process.
    pub async fn close(mut self) {
        self.signals.down.cancel();
        if let Err(error) = self.service.close_with_timeout(CLOSE_TIMEOUT).await {
            tracing::warn!(%error, "the connection to an MCP server cannot be closed; Hob drops it");
        }
        if let Some(process) = self.process {
            process.stop().await;
        }
    }

    /// In the newer protocol, a server reports changes to subscribers only.
    fn subscribe(&mut self) {
        let peer = self.service.peer().clone();
        let Some(info) = peer.peer_info() else { return };
        let reports_changes =
            info.capabilities.tools.as_ref().and_then(|tools| tools.list_changed).unwrap_or(false);
        if !reports_changes || info.protocol_version.has_initialize() {
            return;
        }
        let tools_changed = Arc::clone(&self.signals.tools_changed);
        self.subscription.spawn(async move {
            match peer.listen(SubscriptionFilter::builder().tools_list_changed().build()).await {
                Ok(mut subscription) => {
                    while let Ok(Some(_)) = subscription.next().await {
                        tools_changed.notify_one();
                    }
                }
                Err(error) => tracing::debug!(%error, "an MCP server does not report changes of its tools"),
            }
        });
    }
}

async fn connect<T: Transport<RoleClient> + 'static>(
    transport: T,
    handshake: Handshake,
    signals: &ConnectionSignals,
) -> Result<(RunningService<RoleClient, ClientCallbacks>, Vec<Tool>), McpError> {
    let lifecycle = match handshake {
        Handshake::NewestFirst => ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        },
        Handshake::Initialize => ClientLifecycleMode::Initialize,
    };
    let callbacks = ClientCallbacks { tools_changed: Arc::clone(&signals.tools_changed) };
    let service = callbacks
        .serve_with_lifecycle(GuardedTransport::new(transport, signals.down.clone()), lifecycle)
        .await
        .map_err(handshake_error)?;
    let tools = list_tools(service.peer()).await?;
    Ok((service, tools))
}

async fn list_tools(peer: &Peer<RoleClient>) -> Result<Vec<Tool>, McpError> {
    let has_tools = peer.peer_info().is_some_and(|info| info.capabilities.tools.is_some());
    if !has_tools {
        return Ok(Vec::new());
    }
    let mut tools = Vec::new();
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let request = PaginatedRequestParams::default().with_cursor(cursor);
        let page = peer.list_tools(Some(request)).await.map_err(|error| list_error(&error))?;
        tools.extend(page.tools);
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(tools);
        }
    }
    Err(McpError::Protocol { reason: format!("it has more than {MAX_PAGES} pages of tools") })
}

fn handshake_error(error: ClientInitializeError) -> McpError {
    match error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => handshake_error(*fallback),
        ClientInitializeError::ConnectionClosed(_) => McpError::Closed,
        ClientInitializeError::TransportError { error, .. } => {
            McpError::Unreachable { reason: shortened(&error.error.to_string()) }
        }
        other => McpError::Protocol { reason: shortened(&other.to_string()) },
    }
}

fn list_error(error: &ServiceError) -> McpError {
    match error {
        ServiceError::TransportClosed => McpError::Closed,
        ServiceError::TransportSend(error) => {
            McpError::Unreachable { reason: shortened(&error.error.to_string()) }
        }
        other => McpError::Protocol {
            reason: format!("it does not list its tools: {}", shortened(&other.to_string())),
        },
    }
}

/// The client side of the protocol. It only handles changes of the tools.
struct ClientCallbacks {
    tools_changed: Arc<Notify>,
}

impl ClientHandler for ClientCallbacks {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(
            ClientCapabilities::default(),
            Implementation::new("hob", env!("CARGO_PKG_VERSION")),
        )
        .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.tools_changed.notify_one();
    }
}

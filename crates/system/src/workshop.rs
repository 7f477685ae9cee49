//! Where the tools come from: those of the house, and those of MCP servers, which come and go.

use std::sync::Arc;

use hob_agent::mcp::{McpServerOptions, McpServers, McpTransport};
use hob_agent::sandbox::{Runtime, Sandbox, SandboxOptions};
use hob_agent::tools::{BuiltInOptions, FetchError, FileReadOptions, built_in_tools};
use hob_agent::{ToolBox, ToolBoxError};
use hob_config::{Config, McpReach, McpServerConfig, McpTransportConfig, SandboxConfig, SandboxRuntime};
use hob_core::{Reach, Tool};
use thiserror::Error;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::system::System;

/// Why there are no tools.
#[derive(Debug, Error)]
pub enum WorkshopError {
    #[error("the tool web_fetch cannot be made: {0}")]
    WebFetch(#[from] FetchError),
    #[error(transparent)]
    ToolBox(#[from] ToolBoxError),
}

/// The tools of the house and the MCP servers behind some of them.
pub struct Workshop {
    built_in: Vec<Arc<dyn Tool>>,
    servers: Arc<McpServers>,
    stop: DropGuard,
}

impl Workshop {
    /// Makes the built-in tools and starts the configured servers; their tools come when they are ready.
    pub fn open(config: &Config) -> Result<Self, WorkshopError> {
        let options = BuiltInOptions {
            file_read: FileReadOptions { roots: config.tools.file_roots.clone() },
            sandbox: config.sandbox.enabled.then(|| Arc::new(Sandbox::new(sandbox_options(&config.sandbox)))),
            ..BuiltInOptions::default()
        };
        let servers = config.mcp.servers.iter().map(|(name, server)| server_options(name, server)).collect();
        Ok(Workshop {
            built_in: built_in_tools(options)?,
            servers: Arc::new(McpServers::start(servers)),
            stop: CancellationToken::new().drop_guard(),
        })
    }

    /// The tools there are at this moment.
    pub fn tools(&self) -> Result<ToolBox, WorkshopError> {
        Ok(tool_box(&self.built_in, &self.servers)?)
    }

    /// Waits until every MCP server is ready or has failed.
    pub async fn settled(&self) {
        self.servers.settled().await;
    }

    /// Gives the system the tools of servers as they come and go, for as long as the workshop is open.
    pub fn keep_up(&self, system: &Arc<System>) {
        let (built_in, servers) = (self.built_in.clone(), Arc::clone(&self.servers));
        let system = Arc::downgrade(system);
        let stop = self.stop.token().clone();
        let mut changes = servers.changes();
        tokio::spawn(async move {
            while let Some(Ok(())) = stop.run_until_cancelled(changes.changed()).await {
                let Some(system) = system.upgrade() else { return };
                match tool_box(&built_in, &servers) {
                    Ok(tools) => system.replace_tools(tools),
                    Err(error) => tracing::warn!(%error, "the tools of an MCP server are left out"),
                }
            }
        });
    }

    /// Stops the servers.
    pub async fn close(self) {
        drop(self.stop);
        if let Ok(servers) = Arc::try_unwrap(self.servers) {
            servers.shutdown().await;
        }
    }
}

/// A tool of a server that cannot be taken costs itself only.
fn tool_box(built_in: &[Arc<dyn Tool>], servers: &McpServers) -> Result<ToolBox, ToolBoxError> {
    let mut tools = ToolBox::new(built_in.iter().cloned())?;
    for tool in servers.tools() {
        if let Err(error) = tools.add(tool) {
            tracing::warn!(%error, "a tool of an MCP server is left out");
        }
    }
    Ok(tools)
}

fn sandbox_options(config: &SandboxConfig) -> SandboxOptions {
    SandboxOptions {
        enabled: config.enabled,
        runtime: match &config.runtime {
            SandboxRuntime::Auto => Runtime::Auto,
            SandboxRuntime::Docker => Runtime::Docker,
            SandboxRuntime::Podman => Runtime::Podman,
            SandboxRuntime::Bwrap => Runtime::Bwrap,
            SandboxRuntime::Path(path) => Runtime::Path(path.clone()),
        },
        image: config.image.clone(),
        timeout: config.timeout,
        max_concurrent: config.max_concurrent,
        allowlist: config.allowlist.clone(),
        ..SandboxOptions::default()
    }
}

fn server_options(name: &str, config: &McpServerConfig) -> McpServerOptions {
    let transport = match config.transport.clone() {
        McpTransportConfig::Command { command, args, env } => {
            McpTransport::Stdio { command, args, env, cwd: None }
        }
        McpTransportConfig::Url { url, headers } => McpTransport::Http { url, headers },
    };
    McpServerOptions {
        reach: match config.reach {
            McpReach::Pure => Reach::Pure,
            McpReach::Read => Reach::Read,
            McpReach::Act => Reach::Act,
        },
        call_timeout: config.timeout,
        ..McpServerOptions::new(name, transport)
    }
}

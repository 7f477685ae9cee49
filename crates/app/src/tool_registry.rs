//! Collects the tools of all capabilities, and of MCP servers, whose tools change while Hob runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hob_agents::builtin::{BuiltInOptions, Llm, LlmOptions, built_in_tools};
use hob_agents::{AllowedAfterUntrusted, PermittedTools, ToolSet, ToolSetError};
use hob_channels::channel_tools;
use hob_config::{Config, McpServerConfig, McpTransportConfig, SandboxConfig, SandboxRuntime};
use hob_core::{AllowedRoots, Permit, Reach, RunEvents, Tool, ToolRunner};
use hob_db::Storage;
use hob_keys::AuditService;
use hob_mcp::{
    McpServeError, McpServerOptions, McpServerStatus, McpServers, McpTransport, ToolPins, WithheldTool,
    serve_stdio,
};
use hob_memory::{MemoryService, memory_tools};
use hob_sandbox::{CodeInterpreter, Runtime, Sandbox, SandboxError, SandboxOptions};
use hob_sources::SourceService;
use hob_tasks::{TaskService, task_tools};
use thiserror::Error;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::ask::AskService;
use crate::service_slot::ChannelSlot;
use crate::source_opener::{SourceOpener, SourceSlot, SourceTools};
use crate::startup::tasks::audited_task_tools;

/// Why there are no tools.
#[derive(Debug, Error)]
pub enum ToolRegistryError {
    #[error(transparent)]
    ToolSet(#[from] ToolSetError),
    #[error("the tools cannot be served: {0}")]
    Serve(#[from] McpServeError),
}

/// The tools that are not always available, and what they need.
const CONDITIONS: &[(&str, &str)] = &[
    ("code_interpreter", "running code is disabled. Set [sandbox] enabled = true in config.toml to allow it"),
    (
        "llm",
        "only agents can use it, because it calls the engine of the answer. Try 'hob ask --tools llm QUESTION'",
    ),
    ("channel_send", NO_CHANNEL),
    ("channel_list", NO_CHANNEL),
    ("channel_status", NO_CHANNEL),
    ("calendar", "no calendar is configured. Add one to [sources.calendar] in config.toml"),
    ("feeds", "no feed is configured. Add one to [sources.feeds] in config.toml"),
    ("weather", "no place is configured. Set latitude and longitude under [sources.weather] in config.toml"),
    ("page_changes", "no page is configured. Add one to [sources.pages] in config.toml"),
    (
        "mail",
        "no mailbox is configured. Run 'hob channel add email --read-only', or set imap_host, user and password under [mail] in \
         config.toml",
    ),
];
const NO_CHANNEL: &str =
    "no channel is configured. Connect one with 'hob channel add telegram' or 'hob channel add email'";

/// The file in the configuration directory with the accepted tools of MCP servers.
const PINS: &str = "mcp_tools.json";

/// Accepts the tools that an MCP server lists next. `false` if the server was not known.
pub fn accept_mcp_tools(home: &Path, server: &str) -> std::io::Result<bool> {
    ToolPins::in_file(home.join(PINS)).forget(server)
}

/// What some tools need. A tool without it is not available.
#[derive(Clone, Default)]
pub struct ToolRegistryParts {
    /// Hob's home directory. No tool reads files in it. The accepted tools of MCP servers are saved there.
    pub home: Option<PathBuf>,
    /// For the tool `llm`.
    pub llm: Option<LlmOptions>,
    /// For the tools of the memory.
    pub memory: Option<Arc<MemoryService>>,
    /// For the tools of messaging, which come and go with the channels.
    pub channels: ChannelSlot,
    /// For the tools of sources.
    pub sources: Option<Arc<SourceService>>,
    /// For the tools of tasks.
    pub tasks: Option<TaskService>,
    /// Where changes of tasks are noted.
    pub audit: Option<AuditService>,
}

/// Hob's own tools, and those of the MCP servers.
pub struct ToolRegistry {
    sources: ToolSources,
    stop: DropGuard,
    /// The tasks that keep a service up to date.
    keeping_up: TaskTracker,
}

impl ToolRegistry {
    /// Creates the built-in tools and starts the configured servers, whose tools are added when they are ready.
    pub fn open(config: &Config, parts: ToolRegistryParts) -> Self {
        let pins = parts.home.as_ref().map(|home| ToolPins::in_file(home.join(PINS))).unwrap_or_default();
        let servers = config.mcp.servers.iter().map(|(name, server)| server_options(name, server)).collect();
        let channels = parts.channels.clone();
        let own_sources = SourceTools::new(config, parts.sources.as_ref());
        ToolRegistry {
            sources: ToolSources {
                built_in: built_in(config, parts),
                channels,
                own_sources: SourceSlot::holding(Some(Arc::new(own_sources))),
                servers: Arc::new(McpServers::start(servers, &pins)),
                allowed: allowed_after_untrusted(config),
            },
            stop: CancellationToken::new().drop_guard(),
            keeping_up: TaskTracker::new(),
        }
    }

    /// The tools that are available now.
    pub fn tools(&self) -> Result<ToolSet, ToolRegistryError> {
        Ok(self.sources.tool_set()?)
    }

    /// Servers that changed their tools since they were first seen, each with the tools that are therefore not offered.
    pub fn withheld(&self) -> Vec<(String, Vec<WithheldTool>)> {
        let changed = self.sources.servers.status().into_iter().filter(|server| !server.withheld.is_empty());
        changed.map(|server| (server.name, server.withheld)).collect()
    }

    /// The state of a configured server.
    pub fn server(&self, name: &str) -> Option<McpServerStatus> {
        self.sources.servers.status().into_iter().find(|server| server.name == name)
    }

    /// Waits until every MCP server is ready or has failed.
    pub async fn settled(&self) {
        self.sources.servers.settled().await;
    }

    /// Replaces the sources and the mailbox of the service later.
    pub(crate) fn source_opener(&self, storage: Storage, system: Arc<AskService>) -> SourceOpener {
        let sources = self.sources.clone();
        let slot = sources.own_sources.clone();
        let refresh = Box::new(move |system: &AskService| sources.refresh(system));
        SourceOpener { slot, storage, system, refresh }
    }

    /// Updates the tools of the service when servers start and stop and channels or sources are replaced, until the registry is closed.
    pub fn keep_up(&self, system: &Arc<AskService>) {
        let sources = self.sources.clone();
        let system = Arc::downgrade(system);
        let stop = self.stop.token().clone();
        let (mut servers, mut channels) = (sources.servers.changes(), sources.channels.changes());
        let mut own_sources = sources.own_sources.changes();
        self.keeping_up.spawn(async move {
            let mut servers_change = true;
            loop {
                let change = async {
                    tokio::select! {
                        changed = servers.changed(), if servers_change => servers_change = changed.is_ok(),
                        // The slots are never dropped here.
                        _ = channels.changed() => {}
                        _ = own_sources.changed() => {}
                    }
                };
                if stop.run_until_cancelled(change).await.is_none() {
                    return;
                }
                let Some(system) = system.upgrade() else { return };
                sources.refresh(&system);
            }
        });
    }

    /// Warms up the embedded engine when all tools are available. Runs in the background.
    pub fn warm(&self, system: &Arc<AskService>) {
        let (sources, stop) = (self.sources.clone(), self.stop.token().clone());
        let system = Arc::downgrade(system);
        self.keeping_up.spawn(async move {
            let warming = async {
                sources.servers.settled().await;
                let Some(system) = system.upgrade() else { return };
                if let Ok(tools) = sources.tool_set() {
                    system.replace_tools(tools);
                }
                match system.warm().await {
                    Ok(()) => tracing::debug!("the prompt of the agent is ready"),
                    Err(error) => tracing::debug!(%error, "the prompt of the agent is not read early"),
                }
            };
            stop.run_until_cancelled(warming).await;
        });
    }

    /// Stops the servers.
    pub async fn close(self) {
        drop(self.stop);
        self.keeping_up.close();
        self.keeping_up.wait().await;
        if let Ok(servers) = Arc::try_unwrap(self.sources.servers) {
            servers.shutdown().await;
        }
    }
}

/// Serves all of Hob's own tools on stdin and stdout until the client disconnects.
///
/// Tools of configured MCP servers are not included: a client can connect to those servers itself, and if one of them is this
/// program, it would start itself endlessly.
pub async fn serve_mcp(
    config: &Config,
    parts: ToolRegistryParts,
    version: &str,
) -> Result<(), ToolRegistryError> {
    let connection = connection_tools(config, parts)?;
    let for_one_request = move || -> Arc<dyn ToolRunner> { Arc::new(connection.for_next_request()) };
    Ok(serve_stdio(for_one_request, version).await?)
}

/// Hob's own tools for one connection of an MCP client. What its calls read restricts later calls, as in a run of an agent.
fn connection_tools(config: &Config, parts: ToolRegistryParts) -> Result<PermittedTools, ToolSetError> {
    let channels = parts.channels.clone();
    let own_sources = SourceTools::new(config, parts.sources.as_ref());
    let tools = built_in(config, parts).with(&channels, &own_sources);
    let tools = ToolSet::new(tools)?
        .with_conditions(CONDITIONS)
        .allowing_after_untrusted(allowed_after_untrusted(config));
    let tools = tools.for_run(Permit::up_to(Reach::Act), RunEvents::without_subscribers())?;
    Ok(tools.with_full_definitions())
}

/// The sandbox, or the reason why there is none; `None` if running code is disabled.
pub async fn check_sandbox(config: &Config) -> Option<Result<String, SandboxError>> {
    let sandbox = config.sandbox.enabled.then(|| Sandbox::new(sandbox_options(&config.sandbox)))?;
    Some(sandbox.check().await)
}

/// Hob's own tools without those of channels, sources and the mailbox, which can be replaced.
#[derive(Clone)]
struct BuiltInTools {
    /// They come before all others.
    first: Vec<Arc<dyn Tool>>,
    /// They come after those of channels and the mailbox.
    memory: Vec<Arc<dyn Tool>>,
    /// They come after those of sources.
    tasks: Vec<Arc<dyn Tool>>,
}

impl BuiltInTools {
    /// All of them, in the order in which a model gets them.
    fn with(&self, channels: &ChannelSlot, own_sources: &SourceTools) -> Vec<Arc<dyn Tool>> {
        let mut tools = self.first.clone();
        if let Some(channels) = channels.get() {
            tools.extend(channel_tools(&channels));
        }
        tools.extend(own_sources.mail.clone());
        tools.extend(self.memory.iter().cloned());
        tools.extend(own_sources.sources.iter().cloned());
        tools.extend(self.tasks.iter().cloned());
        tools
    }
}

/// What the tools of a service are made of.
#[derive(Clone)]
struct ToolSources {
    built_in: BuiltInTools,
    channels: ChannelSlot,
    /// The sources and the mailbox of the owner.
    own_sources: SourceSlot,
    allowed: AllowedAfterUntrusted,
    servers: Arc<McpServers>,
}

impl ToolSources {
    /// Gives a service the tools that are available now.
    fn refresh(&self, system: &AskService) {
        match self.tool_set() {
            Ok(tools) => system.replace_tools(tools),
            Err(error) => tracing::warn!(
                %error,
                "the list of tools is not updated because of a bug in Hob; agents keep the last one. Report \
                 this bug with the error"
            ),
        }
    }

    /// A tool of a server that cannot be registered is skipped; the others are not affected.
    fn tool_set(&self) -> Result<ToolSet, ToolSetError> {
        let own_sources = self.own_sources.get().unwrap_or_default();
        let tools = self.built_in.with(&self.channels, &own_sources);
        let tools = ToolSet::new(tools)?.with_conditions(CONDITIONS);
        let mut tools = tools.allowing_after_untrusted(self.allowed.clone());
        for tool in self.servers.tools() {
            if let Err(error) = tools.add_foreign(tool) {
                tracing::warn!(
                    %error,
                    "a tool of an MCP server is skipped; the others work. Correct it in that server"
                );
            }
        }
        Ok(tools)
    }
}

fn built_in(config: &Config, parts: ToolRegistryParts) -> BuiltInTools {
    let files =
        AllowedRoots { roots: config.tools.file_roots.clone(), private: parts.home.into_iter().collect() };
    let mut first = built_in_tools(BuiltInOptions { file_read: files.clone(), ..BuiltInOptions::default() });
    if config.sandbox.enabled {
        let sandbox = Arc::new(Sandbox::new(sandbox_options(&config.sandbox)));
        first.push(Arc::new(CodeInterpreter::new(sandbox)));
    }
    if let Some(llm) = parts.llm {
        first.push(Arc::new(Llm::new(llm)));
    }
    let mut memory = Vec::new();
    if let Some(service) = parts.memory {
        memory.extend(memory_tools(&service, files));
    }
    let mut tasks = Vec::new();
    if let Some(service) = parts.tasks {
        tasks.extend(match &parts.audit {
            Some(audit) => audited_task_tools(&service, audit),
            None => task_tools(&service),
        });
    }
    BuiltInTools { first, memory, tasks }
}

fn allowed_after_untrusted(config: &Config) -> AllowedAfterUntrusted {
    AllowedAfterUntrusted::new(config.tools.allow_after_untrusted.iter().map(String::as_str))
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
        reach: config.reach,
        call_timeout: config.timeout,
        ..McpServerOptions::new(name, transport)
    }
}

#[cfg(test)]
mod tests {
    use hob_core::ToolCall;
    use serde_json::{Value, json};

    use super::*;

    async fn call(connection: &PermittedTools, name: &str, arguments: Value) -> String {
        let call = ToolCall { id: "c".into(), name: name.into(), arguments: arguments.to_string() };
        connection.for_next_request().execute(&call).await.content
    }

    #[tokio::test]
    async fn a_client_that_has_read_a_file_reaches_only_what_the_owner_allows() {
        let mut config = Config::default();
        config.tools.allow_after_untrusted = vec!["web_fetch:127.0.0.1".to_owned()];
        let connection = connection_tools(&config, ToolRegistryParts::default()).unwrap();
        call(&connection, "file_read", json!({ "path": "notes.md" })).await;
        let refused = call(&connection, "web_fetch", json!({ "url": "http://127.0.0.2/?code=4711" })).await;
        assert!(refused.contains("this connection has read untrusted text (file_read)"), "{refused}");
        // It is not fetched, because the address is not public.
        let allowed = call(&connection, "web_fetch", json!({ "url": "http://127.0.0.1/" })).await;
        assert!(!allowed.contains("untrusted text"), "{allowed}");
    }
}

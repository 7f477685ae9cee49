//! All settings together, one field per section of the file.

use crate::agent::AgentConfig;
use crate::channel::ChannelConfig;
use crate::engine::EngineConfig;
use crate::env::{Hub, ProviderKeys};
use crate::intelligence::IntelligenceConfig;
use crate::keys::{Keys, Section};
use crate::mcp::McpConfig;
use crate::memory::MemoryConfig;
use crate::sandbox::SandboxConfig;
use crate::savings::SavingsConfig;
use crate::scheduler::SchedulerConfig;
use crate::server::ServerConfig;
use crate::telemetry::TelemetryConfig;
use crate::tools::ToolsConfig;

/// What Hob was told, resolved and complete. `Config::default()` is what an empty file gives.
#[derive(Debug, Clone, Default)]
pub struct Config {
    pub server: ServerConfig,
    pub engine: EngineConfig,
    pub intelligence: IntelligenceConfig,
    pub agent: AgentConfig,
    pub memory: MemoryConfig,
    pub channel: ChannelConfig,
    pub scheduler: SchedulerConfig,
    pub sandbox: SandboxConfig,
    pub tools: ToolsConfig,
    pub mcp: McpConfig,
    pub telemetry: TelemetryConfig,
    pub savings: SavingsConfig,
    /// The cloud providers' keys. They come from the environment only.
    pub provider_keys: ProviderKeys,
    /// The model hub, from the environment too.
    pub hub: Hub,
}

impl Config {
    /// The model to answer with when a request names none: `[server] model`, else `[intelligence] default_model`.
    /// `None` means the first model of the engine.
    pub fn default_model(&self) -> Option<&str> {
        self.server.model.as_deref().or(self.intelligence.default_model.as_deref())
    }
}

// The fields are taken apart without `..`, here and in the sections: one that no file can set does not compile.
impl Section for Config {
    fn keys<K: Keys>(&mut self, keys: &mut K) {
        let Config {
            server,
            engine,
            intelligence,
            agent,
            memory,
            channel,
            scheduler,
            sandbox,
            tools,
            mcp,
            telemetry,
            savings,
            provider_keys: _,
            hub: _,
        } = self;
        keys.section("server", server, "The HTTP server that 'hob serve' starts.");
        keys.section(
            "engine",
            engine,
            "The engines that answer: ollama, vllm, sglang, llamacpp, litellm, cloud, embedded.",
        );
        keys.section("intelligence", intelligence, "Which model answers when a request names none.");
        keys.section("agent", agent, "Agents: answers that take several turns and use tools.");
        keys.section("memory", memory, "What Hob knows of your documents, after 'hob memory index'.");
        keys.section("channel", channel, "Messaging through a gateway.");
        keys.section("scheduler", scheduler, "Tasks that run at a set time.");
        keys.section("sandbox", sandbox, "Where code written by a model runs: no network, read-only mounts.");
        keys.section("tools", tools, "What agents' tools may touch.");
        keys.section("mcp", mcp, "Servers of the Model Context Protocol, whose tools agents may use.");
        keys.section("telemetry", telemetry, "The record of calls, and traces.");
        keys.section("savings", savings, "What the cloud would have cost.");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_model_goes_before_the_general_one() {
        let mut config = Config::default();
        assert_eq!(config.default_model(), None);
        config.intelligence.default_model = Some("general".into());
        assert_eq!(config.default_model(), Some("general"));
        config.server.model = Some("served".into());
        assert_eq!(config.default_model(), Some("served"));
    }
}

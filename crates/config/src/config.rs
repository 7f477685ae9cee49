//! All settings together, one field per section of the file.

use std::path::PathBuf;

use hob_core::model::DEFAULT_MODEL;

use crate::agent::AgentConfig;
use crate::channel::ChannelConfig;
use crate::database::DatabaseConfig;
use crate::engine::EngineConfig;
use crate::env::{Hub, ProviderKeys};
use crate::intelligence::IntelligenceConfig;
use crate::mail::MailConfig;
use crate::mcp::McpConfig;
use crate::memory::MemoryConfig;
use crate::models::ModelsConfig;
use crate::sandbox::SandboxConfig;
use crate::savings::SavingsConfig;
use crate::scheduler::SchedulerConfig;
use crate::server::ServerConfig;
use crate::settings_schema::{Keys, Section};
use crate::sources::SourcesConfig;
use crate::telemetry::TelemetryConfig;
use crate::tools::ToolsConfig;
use crate::update::UpdateConfig;

/// All settings, resolved. `Config::default()` is the configuration of an empty file.
#[derive(Debug, Clone, Default)]
pub struct Config {
    pub server: ServerConfig,
    pub engine: EngineConfig,
    pub intelligence: IntelligenceConfig,
    pub models: ModelsConfig,
    pub agent: AgentConfig,
    pub memory: MemoryConfig,
    pub channel: ChannelConfig,
    pub mail: MailConfig,
    pub scheduler: SchedulerConfig,
    pub sandbox: SandboxConfig,
    pub tools: ToolsConfig,
    pub mcp: McpConfig,
    pub sources: SourcesConfig,
    pub telemetry: TelemetryConfig,
    pub savings: SavingsConfig,
    pub database: DatabaseConfig,
    pub update: UpdateConfig,
    /// The cloud providers' keys. They come from the environment only.
    pub provider_keys: ProviderKeys,
    /// The model hub, from the environment too.
    pub hub: Hub,
    /// Another directory for libraries of the embedded engine, from the environment too.
    pub backends: Option<PathBuf>,
    /// The password file of PostgreSQL's clients, from the environment too.
    pub passfile: Option<PathBuf>,
}

impl Config {
    /// The model to answer with when a request names none: `[server] model`, else `[intelligence] default_model`.
    /// `None` leaves the choice to Hob.
    pub fn default_model(&self) -> Option<&str> {
        let named = [&self.server.model, &self.intelligence.default_model];
        named.into_iter().flatten().map(String::as_str).find(|model| *model != DEFAULT_MODEL)
    }

    /// Makes the named model the default. The name `default` changes nothing.
    pub fn use_model(&mut self, model: &str) {
        if model != DEFAULT_MODEL {
            self.server.model = Some(model.to_owned());
        }
    }
}

// The fields are taken apart without `..`, here and in the sections: one that no file can set does not compile.
impl Section for Config {
    fn keys<K: Keys>(&mut self, keys: &mut K) {
        let Config {
            server,
            engine,
            intelligence,
            models,
            agent,
            memory,
            channel,
            mail,
            scheduler,
            sandbox,
            tools,
            mcp,
            sources,
            telemetry,
            savings,
            database,
            update,
            provider_keys: _,
            hub: _,
            backends: _,
            passfile: _,
        } = self;
        keys.section("server", server, "The HTTP server that 'hob serve' starts.");
        keys.section(
            "engine",
            engine,
            "The engines that answer: ollama, vllm, sglang, llamacpp, litellm, cloud, embedded.",
        );
        keys.section("intelligence", intelligence, "Which model answers when a request names none.");
        keys.section("models", models, "Names of models that clients send.");
        keys.section("agent", agent, "Agents: answers that take several turns and use tools.");
        keys.section("memory", memory, "The memory: documents indexed with 'hob memory index'.");
        keys.section("channel", channel, "Messaging through a gateway.");
        keys.section("mail", mail, "The e-mail account for the tool mail and the channel email.");
        keys.section("scheduler", scheduler, "Tasks that run at a set time.");
        keys.section(
            "sandbox",
            sandbox,
            "The sandbox for code that models write: no network, read-only mounts.",
        );
        keys.section("tools", tools, "Permissions of agents' tools.");
        keys.section("mcp", mcp, "MCP servers (Model Context Protocol), whose tools agents may use.");
        keys.section(
            "sources",
            sources,
            "Calendars, feeds, web pages and the weather, which agents may read.",
        );
        keys.section("telemetry", telemetry, "The record of calls, and traces.");
        keys.section("savings", savings, "Prices for the estimate of what the cloud would have cost.");
        keys.section(
            "database",
            database,
            "Where Hob stores its state: files, or PostgreSQL for several Hobs.",
        );
        keys.section("update", update, "Where 'hob update' looks for a newer Hob. Hob never updates itself.");
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
        config.use_model("default");
        assert_eq!(config.default_model(), Some("served"), "the one that it is already");
        config.use_model("named");
        assert_eq!(config.default_model(), Some("named"));
        config.server.model = Some("default".into());
        assert_eq!(config.default_model(), Some("general"), "no model of that name is looked for");
    }

    #[test]
    fn what_two_files_say_differently_is_named_and_not_told() {
        let (old, mut new) = (Config::default(), Config::default());
        assert_eq!(old.changed_keys(&new), [] as [&str; 0]);
        new.server.api_key = Some("secret".into());
        new.server.port = 9000;
        new.engine.ollama.host = "http://elsewhere".into();
        assert_eq!(old.changed_keys(&new), ["server.port", "server.api_key", "engine.ollama.host"]);
        assert_eq!(new.changed_keys(&new), [] as [&str; 0]);
    }
}

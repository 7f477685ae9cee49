//! Hob's settings: `config.toml`, the environment, and what the machine has.
//!
//! A setting goes through two steps. *As typed*: the file as a tree of values that still know their line. *As
//! resolved*: [`Config`], where a time-out is a `Duration` and an engine a key that exists. Everything above this
//! crate sees only the second. This crate knows nothing of engines beyond their names, and starts none.
//!
//! ```no_run
//! let loaded = hob_config::load(&hob_config::Environment::from_process())?;
//! println!("listening on port {}", loaded.config.server.port);
//! # Ok::<(), hob_config::ConfigError>(())
//! ```

mod agent;
mod api_key_format;
#[cfg(test)]
mod book_tests;
mod channel;
mod channel_email;
mod config;
mod database;
mod did_you_mean;
mod edit;
mod engine;
mod engine_name;
mod env;
mod error;
#[cfg(fuzzing)]
pub mod fuzzing;
pub mod hardware;
mod identity;
mod intelligence;
mod kind;
mod listing;
mod load;
mod local_settings;
mod mail;
mod mcp;
mod memory;
mod models;
mod read;
mod recommend;
mod router_name;
mod sandbox;
mod savings;
mod scheduler;
mod secret_file;
mod server;
mod settings_file;
mod settings_schema;
mod sources;
mod telemetry;
mod template;
mod tools;
mod unknown_settings;
mod update;

pub use agent::{AgentConfig, AgentName, UnknownAgent};
pub use api_key_format::SuspiciousKey;
pub use channel::{ChannelConfig, TelegramConfig, WhatsappConfig};
pub use channel_email::EmailChannelConfig;
pub use config::Config;
pub use database::DatabaseConfig;
pub use engine::{
    CloudConfig, EmbeddedConfig, EngineConfig, EngineServer, FlashAttentionSetting, KvCacheSetting,
    LlamacppConfig,
};
pub use engine_name::{EngineName, UnknownEngine};
pub use env::{Environment, Hub, ProviderKeys};
pub use error::{BadValue, ConfigError};
pub use hardware::Hardware;
pub use identity::IdentityConfig;
pub use intelligence::IntelligenceConfig;
pub use load::{Loaded, load};
pub use local_settings::{LocalSetting, write_local_settings};
pub use mail::{MailConfig, MailSecuritySetting};
pub use mcp::{McpConfig, McpServerConfig, McpTransportConfig};
pub use memory::{MemoryBackendName, MemoryConfig};
pub use recommend::recommend;
pub use router_name::{RouterName, UnknownRouter};
pub use sandbox::{SandboxConfig, SandboxRuntime};
pub use savings::{SavingsConfig, TokenPrice};
pub use scheduler::SchedulerConfig;
pub use secret_file::read_secret_file;
pub use server::{AccessLog, LimitFailure, ServerConfig, ServerTlsConfig};
pub use settings_file::{
    ChangedSettings, Setting, SettingSection, SettingSource, SettingsError, SettingsFile,
};
pub use sources::{CalendarConfig, SourcesConfig, WeatherConfig, WeatherUnitsSetting};
pub use telemetry::TelemetryConfig;
pub use template::template;
pub use tools::ToolsConfig;
pub use unknown_settings::ConfigWarning;
pub use update::UpdateConfig;

//! Translates the configuration into the options of each part, and connects parts that do not know each other.

pub mod backup;
pub mod channels;
mod email_channel;
pub(crate) mod embedder;
pub mod engines;
pub mod identity;
pub mod keys;
pub(crate) mod llm_tool;
pub mod local_models;
pub mod mail;
pub(crate) mod managed_server;
pub mod memory;
pub mod routing;
pub mod sources;
pub mod tasks;
pub mod telemetry;

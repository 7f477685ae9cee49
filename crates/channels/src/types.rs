//! Messaging as the rest of the house sees it: what a message is, and the contract for sending one.

use std::fmt;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

/// A message that somebody sent to the house.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ChannelMessage {
    /// The channel it arrived on, such as `telegram`.
    pub channel: String,
    pub sender: String,
    pub content: String,
    /// Unique for the message; empty where the channel gives none.
    #[serde(default)]
    pub message_id: String,
    /// The thread it belongs to; empty where the channel has none.
    #[serde(default)]
    pub conversation_id: String,
    /// What else the channel tells of it.
    #[serde(default)]
    pub metadata: Map<String, Value>,
}

/// How a channel is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChannelStatus {
    Connected,
    Disconnected,
    Connecting,
    Error,
    NotConfigured,
}

impl ChannelStatus {
    /// The word that the API and the terminal use.
    pub fn as_str(self) -> &'static str {
        match self {
            ChannelStatus::Connected => "connected",
            ChannelStatus::Disconnected => "disconnected",
            ChannelStatus::Connecting => "connecting",
            ChannelStatus::Error => "error",
            ChannelStatus::NotConfigured => "not_configured",
        }
    }
}

impl fmt::Display for ChannelStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A channel's status with what people want to know beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelReport {
    pub status: ChannelStatus,
    /// The gateway's address; empty where there is no gateway.
    pub gateway_url: String,
    /// What is wrong and what to do about it, where something is.
    pub trouble: Option<String>,
}

/// Why a message was not delivered, or the channels could not be listed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ChannelError {
    #[error(
        "no channel is configured. Set 'enabled = true' under [channel] or [channel.whatsapp] in config.toml"
    )]
    NotConfigured,

    /// The message itself cannot be sent, whatever the state of the channel.
    #[error("cannot send this message: {reason}")]
    Invalid { reason: String },

    /// Whether it arrived is not known when the channel fell silent, so nobody should send it again unasked.
    #[error("the message to '{channel}' was not delivered: {reason}")]
    Undelivered { channel: String, reason: String },

    #[error("cannot list the channels of {gateway}: {reason}")]
    Unlisted { gateway: String, reason: String },
}

/// The ways out of the house for words. Dropping a future of it gives up.
#[async_trait]
pub trait Channels: Send + Sync {
    /// Sends a message. Success means that the channel took it.
    async fn send(
        &self,
        channel: &str,
        content: &str,
        conversation_id: Option<&str>,
    ) -> Result<(), ChannelError>;

    /// The names that [`Self::send`] can reach.
    async fn list(&self) -> Result<Vec<String>, ChannelError>;

    fn report(&self) -> ChannelReport;
}

/// A house without channels.
pub struct NoChannels;

#[async_trait]
impl Channels for NoChannels {
    async fn send(&self, _: &str, _: &str, _: Option<&str>) -> Result<(), ChannelError> {
        Err(ChannelError::NotConfigured)
    }

    async fn list(&self) -> Result<Vec<String>, ChannelError> {
        Ok(Vec::new())
    }

    fn report(&self) -> ChannelReport {
        ChannelReport { status: ChannelStatus::NotConfigured, gateway_url: String::new(), trouble: None }
    }
}

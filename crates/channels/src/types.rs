//! Messages, the status of a channel, and its errors.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::received_file::ChannelFile;

/// A message that came in.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ChannelMessage {
    /// Such as `telegram`.
    pub channel: String,
    pub sender: String,
    pub content: String,
    /// Empty if the channel gives none.
    #[serde(default)]
    pub message_id: String,
    /// The thread; empty if the channel has none.
    #[serde(default)]
    pub conversation_id: String,
    /// Whether several people read the conversation.
    #[serde(default)]
    pub is_group: bool,
    /// What is attached, at most [`MAX_FILES`](crate::MAX_FILES).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<ChannelFile>,
    /// Additional data of the channel.
    #[serde(default)]
    pub metadata: Map<String, Value>,
}

/// The status of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChannelStatus {
    Connected,
    Disconnected,
    Connecting,
    Error,
    NotConfigured,
}

hob_core::named_variants! {
    ChannelStatus {
        Connected => "connected",
        Disconnected => "disconnected",
        Connecting => "connecting",
        Error => "error",
        NotConfigured => "not_configured",
    }
}

/// The status of a channel, with the details that people need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelReport {
    pub status: ChannelStatus,
    /// Empty if there is no gateway.
    pub gateway_url: String,
    /// The error and its fix, if there is one.
    pub problem: Option<String>,
}

/// Why a message was not delivered, or the channels could not be listed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ChannelError {
    #[error(
        "no channel is configured. Run 'hob channel add telegram', or set 'enabled = true' under [channel] or [channel.whatsapp] in config.toml"
    )]
    NotConfigured,

    /// The message itself is invalid, independent of the state of the channel.
    #[error("cannot send this message: {reason}")]
    Invalid { reason: String },

    /// The message may have arrived if the channel stopped answering, so Hob does not send it again.
    #[error("the message to '{channel}' was not delivered: {reason}")]
    Undelivered { channel: String, reason: String },

    #[error("cannot list the channels of {gateway}: {reason}")]
    Unlisted { gateway: String, reason: String },
}

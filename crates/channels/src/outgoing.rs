//! Messages to send, the contract of a sender, and its errors.

use std::sync::Arc;

use async_trait::async_trait;
use hob_core::{Event, EventBus, random_id};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::live_reply::{LiveReply, NoLiveReply};
use crate::types::{ChannelError, ChannelMessage};

/// A message to send.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Outgoing {
    pub channel: String,
    pub content: String,
    pub conversation_id: Option<String>,
    /// The account that sends it, if the channel has several.
    pub account_id: Option<String>,
    /// The message that it answers.
    #[serde(default)]
    pub reply_to: Option<String>,
    /// What the conversation is about, on a channel that says that.
    #[serde(default)]
    pub subject: Option<String>,
    /// The same for every attempt, so that a gateway can recognise a message that it already has.
    pub key: String,
}

impl Outgoing {
    pub fn new(channel: &str, content: &str, conversation_id: Option<&str>) -> Result<Self, ChannelError> {
        let invalid = |reason: &str| Err(ChannelError::Invalid { reason: reason.to_owned() });
        if channel.trim().is_empty() {
            return invalid("the channel is missing");
        }
        if content.trim().is_empty() {
            return invalid("the text is empty");
        }
        if content.len() > MAX_CONTENT_BYTES {
            return invalid(&format!("the text is longer than {} KiB", MAX_CONTENT_BYTES >> 10));
        }
        Ok(Outgoing {
            channel: channel.to_owned(),
            content: content.to_owned(),
            conversation_id: conversation_id.filter(|id| !id.is_empty()).map(str::to_owned),
            account_id: None,
            reply_to: None,
            subject: None,
            key: random_id("hob-"),
        })
    }
}

/// No channel accepts longer messages.
const MAX_CONTENT_BYTES: usize = 256 << 10;

/// The problem of a message to a channel of which each recipient has an address.
pub(crate) const NO_RECIPIENT: &str = "the message needs a recipient";

/// Why a message was not sent.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
pub(crate) enum SendFailure {
    /// It certainly was not sent: it may be tried again.
    #[error("{0}")]
    NotSent(String),
    /// It may have been sent: another attempt could deliver it twice.
    #[error("{0}; the message may have arrived")]
    Unknown(String),
    /// The other side refuses it.
    #[error("{0}")]
    Refused(String),
    /// The message is not valid; no attempt was made.
    #[error("{0}")]
    Invalid(String),
}

impl SendFailure {
    pub fn explain(self, channel: &str) -> ChannelError {
        match self {
            SendFailure::Invalid(reason) => ChannelError::Invalid { reason },
            other => ChannelError::Undelivered { channel: channel.to_owned(), reason: other.to_string() },
        }
    }
}

/// Sends messages over one channel.
#[async_trait]
pub(crate) trait MessageSender: Send + Sync {
    /// Makes one attempt. Success means that the other side has the message.
    async fn deliver(&self, message: &Outgoing) -> Result<(), SendFailure>;

    /// The names that can be sent to.
    async fn channels(&self) -> Result<Vec<String>, String>;

    /// Refuses a recipient that this channel cannot have. A gateway knows its own.
    fn check_recipient(&self, _channel: &str, _conversation_id: Option<&str>) -> Result<(), SendFailure> {
        Ok(())
    }

    /// Shows the answer to `message` while it is written. `key` is the key of the complete reply.
    fn live(&self, _message: &ChannelMessage, _key: &str) -> Arc<dyn LiveReply> {
        Arc::new(NoLiveReply)
    }

    /// The channel starts to listen, or stops.
    fn set_listening(&self, _is_listening: bool) {}
}

/// Makes one attempt, and publishes an event when it succeeds.
pub(crate) async fn deliver(
    sender: &dyn MessageSender,
    events: &EventBus,
    message: &Outgoing,
) -> Result<(), SendFailure> {
    sender.deliver(message).await?;
    let event = Event::ChannelMessageSent {
        channel: message.channel.clone(),
        content: message.content.clone(),
        conversation_id: message.conversation_id.clone().unwrap_or_default(),
    };
    events.publish(&"".into(), event);
    Ok(())
}

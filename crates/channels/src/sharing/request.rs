//! What a process without the lease asks of the one that has it, as it is in the database.

use serde::{Deserialize, Serialize};

use crate::outgoing::{MessageSender, Outgoing, SendFailure};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum HolderRequest {
    Deliver(Outgoing),
    ListChannels,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum HolderReply {
    Delivered(Result<(), SendFailure>),
    Channels(Result<Vec<String>, String>),
    /// A request of a newer version of Hob.
    NotUnderstood,
}

/// Does what a request asks.
pub(super) async fn fulfil(request: &str, sender: &dyn MessageSender) -> HolderReply {
    match serde_json::from_str(request) {
        Ok(HolderRequest::Deliver(message)) => HolderReply::Delivered(sender.deliver(&message).await),
        Ok(HolderRequest::ListChannels) => HolderReply::Channels(sender.channels().await),
        Err(error) => {
            tracing::warn!(
                %error,
                "a request of another Hob is not understood. Run the same version of Hob everywhere"
            );
            HolderReply::NotUnderstood
        }
    }
}

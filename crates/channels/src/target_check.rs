//! Checks a target before anything is sent to it, for what is sent later, such as the results of a task.

use std::time::Duration;

use crate::service::ChannelService;
use crate::types::ChannelError;
use crate::whatsapp;

/// How long a gateway may take to list its channels.
const LISTING: Duration = Duration::from_secs(5);

/// The characters of a target in messages.
const MAX_SHOWN: usize = 60;

impl ChannelService {
    /// The target with its recipient, as [`Self::resolve_target`] understands it, if its channel exists. A gateway that does not answer
    /// now may answer later, so its targets are then accepted.
    pub async fn check_target(
        &self,
        target: &str,
        conversation_id: Option<&str>,
    ) -> Result<String, ChannelError> {
        let resolved = self.resolve_target(target, conversation_id).await?;
        let shown: String = target.chars().take(MAX_SHOWN).collect();
        match tokio::time::timeout(LISTING, self.list()).await {
            Ok(Ok(names)) if names.iter().any(|name| reaches(name, &resolved)) => Ok(resolved),
            Ok(Ok(names)) => {
                let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                let reason = format!("there is no channel '{shown}'; there are {known}");
                Err(ChannelError::Invalid { reason })
            }
            Ok(Err(error)) => {
                tracing::warn!(
                    %error,
                    channel = shown,
                    "a channel is not checked. 'hob channel status' tests the channels"
                );
                Ok(resolved)
            }
            Err(_elapsed) => {
                tracing::warn!(
                    channel = shown,
                    "a channel is not checked: the gateway does not answer. 'hob channel status' \
                     tests it"
                );
                Ok(resolved)
            }
        }
    }
}

/// Whether a target is on this channel. WhatsApp targets are numbers; others may name a recipient after a colon.
fn reaches(name: &str, target: &str) -> bool {
    target == name
        || target.split_once(':').is_some_and(|(channel, _)| channel == name)
        || (name == whatsapp::CHANNEL && whatsapp::is_ours(target))
}

//! The tasks of a home directory: the agents that answer them, and the channels that deliver their results.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hob_channels::{ChannelError, ChannelService};
use hob_db::Storage;
use hob_tasks::store::task_store;
use hob_tasks::{Deliver, DeliverError, DeliverTo, TaskOptions, TaskService};

use crate::service_slot::ChannelSlot;
use crate::startup::channels::is_whatsapp;

/// How long a gateway may take to list its channels.
const LISTING: Duration = Duration::from_secs(5);

/// The name under which WhatsApp is listed.
const WHATSAPP: &str = "whatsapp";

/// The tasks in a database. Creates nothing until a task is created.
pub fn task_service(storage: impl Into<Storage>, options: TaskOptions) -> TaskService {
    TaskService::new(task_store(storage), options)
}

/// Tasks that all agents can answer, and whose results go to `channels`, if there are any.
pub fn task_options(channels: Option<Arc<ChannelService>>) -> TaskOptions {
    task_options_for(ChannelSlot::holding(channels))
}

/// The same with channels that may be opened later.
pub(crate) fn task_options_for(channels: ChannelSlot) -> TaskOptions {
    TaskOptions {
        deliver: Arc::new(ChannelDelivery { channels }),
        agents: hob_agents::AGENTS.map(str::to_owned).to_vec(),
        agent_aliases: hob_agents::AGENT_ALIASES.map(str::to_owned).to_vec(),
        ..TaskOptions::default()
    }
}

/// Why a task cannot have this target. Nothing is sent yet, so the error does not speak of a message.
fn refusal(error: ChannelError) -> DeliverError {
    match error {
        ChannelError::Invalid { reason } => DeliverError(reason),
        error => DeliverError(error.to_string()),
    }
}

/// Sends the results of tasks through the channels.
struct ChannelDelivery {
    channels: ChannelSlot,
}

#[async_trait]
impl Deliver for ChannelDelivery {
    async fn check(&self, to: DeliverTo) -> Result<DeliverTo, DeliverError> {
        let shown: String = to.channel.chars().take(60).collect();
        let refuse = |reason: String| Err(DeliverError(reason));
        let Some(channels) = self.channels.get() else {
            return refuse(format!("there is no channel '{shown}': {}", ChannelError::NotConfigured));
        };
        // Saved with its recipient, so that it stays the same when another sender is approved.
        let resolved = channels.resolve_target(&to.channel, to.conversation.as_deref()).await;
        let to = DeliverTo { channel: resolved.map_err(refusal)?, ..to };
        match tokio::time::timeout(LISTING, channels.list()).await {
            Ok(Ok(names)) if names.iter().any(|name| reaches(name, &to.channel)) => Ok(to),
            Ok(Ok(names)) if names.is_empty() => {
                refuse(format!("there is no channel '{shown}'; there are none"))
            }
            Ok(Ok(names)) => refuse(format!("there is no channel '{shown}'; there are {}", names.join(", "))),
            // The gateway does not answer now, but it may when the task runs.
            Ok(Err(error)) => {
                tracing::warn!(
                    %error,
                    channel = shown,
                    "the channel of a task is not checked. 'hob channel status' tests the channels"
                );
                Ok(to)
            }
            Err(_elapsed) => {
                tracing::warn!(
                    channel = shown,
                    "the channel of a task is not checked: the gateway does not answer. 'hob channel status' \
                     tests it"
                );
                Ok(to)
            }
        }
    }

    async fn deliver(&self, text: &str, to: &DeliverTo) -> Result<(), DeliverError> {
        let sent = match self.channels.get() {
            Some(channels) => channels.send(&to.channel, text, to.conversation.as_deref()).await,
            None => Err(ChannelError::NotConfigured),
        };
        sent.map_err(|error| DeliverError(error.to_string()))
    }
}

/// Whether a target is on this channel. WhatsApp targets are numbers; others may name a recipient after a colon.
fn reaches(name: &str, target: &str) -> bool {
    target == name
        || target.split_once(':').is_some_and(|(channel, _)| channel == name)
        || (name == WHATSAPP && is_whatsapp(target))
}

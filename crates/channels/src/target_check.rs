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
                    "a target is accepted without a check. 'hob channel status' tests the channels"
                );
                Ok(resolved)
            }
            Err(_elapsed) => {
                tracing::warn!(
                    channel = shown,
                    "a target is accepted without a check: the gateway does not answer. 'hob channel status' \
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hob_testkit::{Gateway, GatewayScript, Recorded, Reply, free_port};

    use super::*;
    use crate::gateway::client::GatewayOptions;
    use crate::service::ChannelOptions;

    fn service(url: String) -> ChannelService {
        let gateway = Some(GatewayOptions::new(url));
        ChannelService::new(ChannelOptions { gateway, ..ChannelOptions::default() }).unwrap()
    }

    #[tokio::test]
    async fn a_target_is_accepted_if_its_channel_exists_or_the_gateway_does_not_answer() {
        let http = |_: &Recorded| Reply::json(200, r#"["loft"]"#);
        let script = GatewayScript { http: Arc::new(http), ..GatewayScript::default() };
        let gateway = Gateway::start(script).await;
        let channels = service(gateway.url());
        for target in ["loft", "loft:left"] {
            assert_eq!(channels.check_target(target, None).await.as_deref(), Ok(target));
        }
        let long = "pigeons".repeat(20);
        let reason = format!("there is no channel '{}'; there are loft", &long[..MAX_SHOWN]);
        assert_eq!(channels.check_target(&long, None).await, Err(ChannelError::Invalid { reason }));

        let silent = service(format!("ws://127.0.0.1:{}/ws", free_port()));
        assert_eq!(silent.check_target("pigeons", None).await.as_deref(), Ok("pigeons"));
    }
}

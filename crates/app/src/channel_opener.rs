//! Opens, replaces and closes the channels of a running app when a reload changes their settings.

use std::path::PathBuf;
use std::sync::Arc;

use hob_channels::{ChannelError, ChannelService};
use hob_config::Config;
use hob_core::Ask;
use hob_db::Storage;

use crate::ask::AskService;
use crate::service_slot::ChannelSlot;
use crate::startup::channels::{ChannelParts, open_channels};

/// Replaces the channels of a running app.
pub struct ChannelOpener {
    pub(crate) slot: ChannelSlot,
    pub(crate) storage: Storage,
    pub(crate) system: Arc<AskService>,
    pub(crate) home: PathBuf,
}

/// Channels that are created and not connected. None, if the configuration has none.
pub struct PreparedChannels(Option<Arc<ChannelService>>);

impl ChannelOpener {
    /// Creates the channels of this configuration. Those in use are not affected.
    pub fn prepare(&self, config: &Config) -> Result<PreparedChannels, ChannelError> {
        let parts = ChannelParts { storage: self.storage.clone(), events: self.system.bus().clone() };
        open_channels(config, &self.home, parts).map(PreparedChannels)
    }

    /// Closes the channels in use, connects these instead, and answers incoming messages. Messages that were not answered yet are answered
    /// by the new channels. Agents have the tools of channels from then on.
    pub async fn replace(&self, prepared: PreparedChannels) {
        let PreparedChannels(channels) = prepared;
        // Before the others connect: a messenger may know one connection only.
        if let Some(before) = self.slot.get() {
            before.close().await;
        }
        self.slot.set(channels.clone());
        if let Some(channels) = channels {
            channels.listen(&(Arc::clone(&self.system) as Arc<dyn Ask>));
        }
    }
}

#[cfg(test)]
mod tests {
    use hob_core::EventBus;
    use hob_testkit::{Gateway, GatewayScript, ScriptedEngine};

    use super::*;
    use crate::ask::AskServiceParts;
    use crate::databases::hob_database;
    use crate::tool_registry::{ToolRegistry, ToolRegistryParts};

    fn with_gateway(url: &str) -> Config {
        let mut config = Config::default();
        config.channel.enabled = true;
        config.channel.gateway_url = url.into();
        config
    }

    /// Waits until agents have the tools of channels, or do not have them.
    async fn until_tools(system: &AskService, are_there: bool) {
        while system.tools().specs().any(|spec| spec.name == "channel_send") != are_there {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn channels_and_their_tools_come_change_and_go_without_a_restart() {
        let home = tempfile::tempdir().unwrap();
        let slot = ChannelSlot::default();
        let tools = ToolRegistryParts { channels: slot.clone(), ..ToolRegistryParts::default() };
        let registry = ToolRegistry::open(&Config::default(), tools);
        let parts = AskServiceParts {
            engine: Arc::new(ScriptedEngine::saying(&["hi"])),
            default_model: None,
            agent: None,
            tools: registry.tools().unwrap(),
            max_turns: 1,
            bus: EventBus::new(),
            log: Arc::new(hob_telemetry::TelemetryService::default()),
        };
        let system = Arc::new(AskService { channels: slot.clone(), ..AskService::new(parts) });
        registry.keep_up(&system);
        let opener = ChannelOpener {
            slot,
            storage: hob_database(home.path()).into(),
            system: Arc::clone(&system),
            home: home.path().to_owned(),
        };
        let apply = async |config: &Config| opener.replace(opener.prepare(config).unwrap()).await;
        apply(&Config::default()).await;
        assert!(system.channels().is_none());

        let gateways =
            [Gateway::start(GatewayScript::default()).await, Gateway::start(GatewayScript::default()).await];
        apply(&with_gateway(&gateways[0].url())).await;
        gateways[0].opened(1).await;
        until_tools(&system, true).await;
        apply(&with_gateway(&gateways[1].url())).await;
        gateways[1].opened(1).await;
        let report = system.channels().expect("channels").report();
        assert_eq!(report.gateway_url, gateways[1].url());

        // What cannot be created replaces nothing.
        let mut wrong = with_gateway(&gateways[0].url());
        wrong.channel.telegram.enabled = true;
        assert!(opener.prepare(&wrong).is_err(), "Telegram has no token");
        assert_eq!(system.channels().expect("channels").report().gateway_url, gateways[1].url());

        apply(&Config::default()).await;
        assert!(system.channels().is_none());
        until_tools(&system, false).await;
        registry.close().await;
    }
}

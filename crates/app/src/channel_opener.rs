//! Opens channels in an app that was started without any, when a reload turns them on.

use std::path::PathBuf;
use std::sync::Arc;

use hob_channels::ChannelError;
use hob_config::Config;
use hob_core::Ask;
use hob_db::Storage;

use crate::ask::AskService;
use crate::channel_slot::ChannelSlot;
use crate::startup::channels::{ChannelParts, open_channels};

/// Opens channels in an app that was started without any.
pub struct ChannelOpener {
    pub(crate) slot: ChannelSlot,
    pub(crate) storage: Storage,
    pub(crate) system: Arc<AskService>,
    pub(crate) home: PathBuf,
}

impl ChannelOpener {
    /// Whether there are no channels yet, and this configuration has some.
    pub fn would_open(&self, config: &Config) -> bool {
        self.slot.get().is_none() && (config.channel.enabled || config.channel.whatsapp.enabled)
    }

    /// Opens the channels of this configuration, connects them, and answers incoming messages. Agents get the tools of channels after a
    /// restart. Does nothing if there are channels already.
    pub fn open(&self, config: &Config) -> Result<(), ChannelError> {
        if !self.would_open(config) {
            return Ok(());
        }
        let parts = ChannelParts { storage: self.storage.clone(), events: self.system.bus().clone() };
        if let Some(channels) = open_channels(config, &self.home, parts)? {
            self.slot.fill(Arc::clone(&channels));
            channels.listen(&(Arc::clone(&self.system) as Arc<dyn Ask>));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use hob_core::EventBus;
    use hob_testkit::ScriptedEngine;

    use super::*;
    use crate::ask::AskServiceParts;
    use crate::databases::hob_database;

    #[tokio::test]
    async fn channels_are_opened_once_and_only_if_the_configuration_has_some() {
        let home = tempfile::tempdir().unwrap();
        let slot = ChannelSlot::default();
        let parts = AskServiceParts {
            engine: Arc::new(ScriptedEngine::saying(&["hi"])),
            default_model: None,
            agent: None,
            tools: hob_agents::ToolSet::default(),
            max_turns: 1,
            bus: EventBus::new(),
            log: Arc::new(hob_telemetry::TelemetryService::default()),
        };
        let system = Arc::new(AskService::new(parts).with_channel_slot(slot.clone()));
        let opener = ChannelOpener {
            slot,
            storage: hob_database(home.path()).into(),
            system: Arc::clone(&system),
            home: home.path().to_owned(),
        };
        let mut config = Config::default();
        opener.open(&config).unwrap();
        assert!(system.channels().is_none());
        config.channel.enabled = true;
        // A gateway that is not there: the channel exists, and tries again and again.
        config.channel.gateway_url = "ws://127.0.0.1:9/ws".into();
        assert!(opener.would_open(&config));
        opener.open(&config).unwrap();
        let opened = system.channels().expect("channels");
        assert!(!opener.would_open(&config));
        opener.open(&config).unwrap();
        assert!(Arc::ptr_eq(&opened, &system.channels().expect("the same")));
        opened.close().await;
    }
}

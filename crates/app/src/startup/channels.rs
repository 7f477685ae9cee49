//! The channels as the configuration describes them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hob_channels::store::Conversations;
use hob_channels::whatsapp::{Installer, Program};
use hob_channels::{
    Bridge, BridgeOptions, ChannelError, ChannelOptions, ChannelService, Channels, InboundRules, NoChannels,
    Whatsapp, WhatsappOptions,
};
use hob_config::{ChannelConfig, Config};
use hob_core::{AgentPreference, EventBus};
use hob_db::LazyDatabase;

/// Held by the one Hob that answers messages.
const LOCK: &str = "channels.lock";

/// What the channels share with the rest of the program.
pub struct ChannelParts {
    /// Remembers conversations.
    pub database: LazyDatabase,
    /// Hears what happens on the channels.
    pub bus: EventBus,
}

/// Makes the channels that are switched on, and connects none yet; `None` when there are none.
pub fn open_channels(
    config: &Config,
    home: &Path,
    parts: ChannelParts,
) -> Result<Option<ChannelService>, ChannelError> {
    let channel = &config.channel;
    if !channel.enabled && !channel.whatsapp.enabled {
        return Ok(None);
    }
    ChannelService::new(ChannelOptions {
        gateway: channel.enabled.then(|| bridge_options(channel, &channel.gateway_url)),
        whatsapp: channel.whatsapp.enabled.then(|| whatsapp_options(config, home)),
        rules: rules(channel),
        reply: channel.reply,
        conversations: open_conversations(&parts.database),
        lock: home.join(LOCK),
        bus: parts.bus,
    })
    .map(Some)
}

/// The contract of channels that may not be there.
pub fn contract(channels: Option<&ChannelService>) -> Arc<dyn Channels> {
    channels.map_or_else(|| Arc::new(NoChannels) as Arc<dyn Channels>, ChannelService::contract)
}

/// A bridge of one's own to the gateway, or to another one, for a single errand.
pub fn gateway(config: &ChannelConfig, url: Option<&str>) -> Result<Bridge, ChannelError> {
    let configured = config.gateway_url.as_str();
    let options = match url {
        // The token is for the gateway it was made for.
        Some(url) if url != configured => BridgeOptions { token: None, ..bridge_options(config, url) },
        _ => bridge_options(config, configured),
    };
    Bridge::new(options)
}

/// WhatsApp of one's own, for a single errand.
pub fn whatsapp(config: &Config, home: &Path) -> Whatsapp {
    Whatsapp::new(whatsapp_options(config, home))
}

/// Whether a target is an address on WhatsApp.
pub fn is_whatsapp(target: &str) -> bool {
    hob_channels::whatsapp::is_ours(target)
}

/// What puts the WhatsApp bridge where it belongs.
pub fn installer(home: &Path) -> Installer {
    Installer::new(home.join("bridges").join("whatsapp"))
}

/// What speaks WhatsApp.
pub fn program(config: &Config, home: &Path) -> Program {
    Program {
        node: PathBuf::from("node"),
        script: installer(home).script(),
        auth_dir: config.channel.whatsapp.auth_dir.clone().unwrap_or_else(|| home.join("whatsapp")),
    }
}

fn bridge_options(config: &ChannelConfig, url: &str) -> BridgeOptions {
    BridgeOptions {
        token: config.token.clone(),
        reconnect_interval: config.reconnect_interval,
        ..BridgeOptions::new(url)
    }
}

fn whatsapp_options(config: &Config, home: &Path) -> WhatsappOptions {
    let settings = &config.channel.whatsapp;
    WhatsappOptions {
        assistant_name: settings.assistant_name.clone(),
        assistant_has_own_number: settings.assistant_has_own_number,
        ..WhatsappOptions::new(program(config, home))
    }
}

fn rules(config: &ChannelConfig) -> InboundRules {
    InboundRules {
        agent: match config.default_agent {
            Some(agent) => AgentPreference::Named(agent.as_str().to_owned()),
            None => AgentPreference::None,
        },
        trust: config.trust.clone(),
        allow_from: config.allow_from.clone(),
        messages_per_minute: config.messages_per_minute,
        history: config.history,
    }
}

/// Conversations are worth a warning, not a refusal: without them messages are answered all the same.
fn open_conversations(database: &LazyDatabase) -> Option<Conversations> {
    match database.open() {
        Ok(store) => Some(Conversations::new(store)),
        Err(error) => {
            tracing::warn!(%error, "conversations are not remembered");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::databases::hob_database;

    #[test]
    fn channels_that_are_off_do_not_exist() {
        let home = tempfile::tempdir().unwrap();
        let parts = ChannelParts { database: hob_database(home.path()), bus: EventBus::new() };
        let channels = open_channels(&Config::default(), home.path(), parts).unwrap();
        assert!(channels.is_none());
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0, "and leave nothing behind");
    }
}

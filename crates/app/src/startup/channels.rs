//! Translates the configuration of channels into their options.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hob_channels::whatsapp::{WhatsappInstaller, WhatsappLinking, WhatsappProgram};
use hob_channels::{
    Channel, ChannelError, ChannelOptions, ChannelService, ChannelSharing, EMAIL_CHANNEL, GatewayOptions,
    InboundRules, OpenedChannelStore, WhatsappOptions, open_channel_store,
};
use hob_config::{ChannelConfig, Config};
use hob_core::{AgentPreference, EventBus};
use hob_db::Storage;

use crate::startup::email_channel::{allow_from, email_options, trust};

/// The file that is locked by the one process that answers messages.
const LOCK: &str = "channels.lock";

/// What the channels share with the rest of the program.
pub struct ChannelParts {
    /// Saves messages and conversations.
    pub storage: Storage,
    /// Gets the events of the channels.
    pub events: EventBus,
}

/// Creates the enabled channels without connecting them; `None` if there are none.
pub fn open_channels(
    config: &Config,
    home: &Path,
    parts: ChannelParts,
) -> Result<Option<Arc<ChannelService>>, ChannelError> {
    let channel = &config.channel;
    if !channel.enabled && !channel.whatsapp.enabled && !channel.email.enabled {
        return Ok(None);
    }
    let opened = open_store(&parts.storage);
    let sharing = opened.as_ref().and_then(|opened| opened.shared.clone()).map(ChannelSharing::new);
    let service = ChannelService::new(ChannelOptions {
        gateway: channel.enabled.then(|| gateway_options(channel, &channel.gateway_url)),
        whatsapp: channel.whatsapp.enabled.then(|| whatsapp_options(config, home)),
        email: if channel.email.enabled { Some(email_options(config)?) } else { None },
        inbound: channel.reply.then(|| rules(channel)),
        store: opened.map(|opened| opened.store),
        // With a shared database, a lease decides which process is connected.
        lock: sharing.is_none().then(|| home.join(LOCK)),
        sharing,
        events: parts.events,
    })?;
    Ok(Some(Arc::new(service)))
}

/// A client of the configured gateway, or of another one, for a single command.
pub fn gateway(config: &ChannelConfig, url: Option<&str>) -> Result<Channel, ChannelError> {
    let configured = config.gateway_url.as_str();
    let options = match url {
        // The token is only for the configured gateway.
        Some(url) if url != configured => GatewayOptions { token: None, ..gateway_options(config, url) },
        _ => gateway_options(config, configured),
    };
    Channel::gateway(options)
}

/// WhatsApp for a single command.
pub fn whatsapp(config: &Config, home: &Path) -> Channel {
    Channel::whatsapp(whatsapp_options(config, home))
}

/// Whether a target is an address on WhatsApp.
pub fn is_whatsapp(target: &str) -> bool {
    hob_channels::whatsapp::is_ours(target)
}

/// Installs the WhatsApp bridge below `home`.
pub fn installer(home: &Path) -> WhatsappInstaller {
    WhatsappInstaller::new(home.join("bridges").join("whatsapp"))
}

/// Links an account to WhatsApp for a server whose channel is off.
pub fn linking(config: &Config, home: &Path) -> WhatsappLinking {
    WhatsappLinking::new(program(config, home), installer(home))
}

/// The program that connects to WhatsApp.
pub fn program(config: &Config, home: &Path) -> WhatsappProgram {
    WhatsappProgram {
        node: PathBuf::from("node"),
        script: installer(home).script(),
        auth_dir: config.channel.whatsapp.auth_dir.clone().unwrap_or_else(|| home.join("whatsapp")),
    }
}

fn gateway_options(config: &ChannelConfig, url: &str) -> GatewayOptions {
    GatewayOptions {
        token: config.token.clone(),
        reconnect_interval: config.reconnect_interval,
        ..GatewayOptions::new(url)
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
        trust: trust(config),
        allow_from: allow_from(config),
        messages_per_minute: config.messages_per_minute,
        history: config.history,
        key: config.key.as_deref().map(Into::into),
        pairing: config.email.pairing.then(|| EMAIL_CHANNEL.to_owned()).into_iter().collect(),
        transcription_model: config.transcription_model.clone(),
    }
}

/// A database that cannot be opened is a warning only: messages are answered without it.
fn open_store(storage: &Storage) -> Option<OpenedChannelStore> {
    match open_channel_store(storage) {
        Ok(opened) => Some(opened),
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
        let parts = ChannelParts { storage: hob_database(home.path()).into(), events: EventBus::new() };
        let channels = open_channels(&Config::default(), home.path(), parts).unwrap();
        assert!(channels.is_none());
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0, "and leave nothing behind");
    }
}

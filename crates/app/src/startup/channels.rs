//! Translates the configuration of channels into their options.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hob_channels::telegram::{TelegramApi, TelegramBot};
use hob_channels::whatsapp::{WhatsappInstaller, WhatsappLinking, WhatsappProgram};
use hob_channels::{
    Channel, ChannelError, ChannelOptions, ChannelService, ChannelSharing, ChannelStore, EMAIL_CHANNEL,
    GatewayOptions, OpenedChannelStore, ReplyRules, TelegramOptions, WhatsappOptions, open_channel_store,
    rules_with_email,
};
use hob_config::{ChannelConfig, Config, TelegramConfig, read_secret_file};
use hob_core::{AgentPreference, EventBus};
use hob_db::Storage;
use secrecy::SecretString;

use crate::startup::email_channel::email_options;

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
    let is_any_on =
        channel.enabled || channel.whatsapp.enabled || channel.telegram.enabled || channel.email.enabled;
    if !is_any_on {
        return Ok(None);
    }
    let opened = open_store(&parts.storage);
    let sharing = opened.as_ref().and_then(|opened| opened.shared.clone()).map(ChannelSharing::new);
    let service = ChannelService::new(ChannelOptions {
        gateway: channel.enabled.then(|| gateway_options(channel, &channel.gateway_url)),
        whatsapp: channel.whatsapp.enabled.then(|| whatsapp_options(config, home)),
        telegram: channel.telegram.enabled.then(|| telegram_options(&channel.telegram)).transpose()?,
        email: channel.email.enabled.then(|| email_options(config)).transpose()?,
        reply_rules: channel.reply.then(|| rules(channel)),
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

/// WhatsApp for a single command. Messages that come meanwhile wait in the store for the server, if it answers messages.
pub fn whatsapp(config: &Config, home: &Path, store: Option<Arc<dyn ChannelStore>>) -> Channel {
    Channel::whatsapp_of_command(whatsapp_options(config, home), store.filter(|_| config.channel.reply))
}

/// Telegram for a single command.
pub fn telegram(config: &Config) -> Result<Channel, ChannelError> {
    Channel::telegram(telegram_options(&config.channel.telegram)?)
}

/// The bot of the configured token, or why it is not known. Receives no messages, so it does not disturb a running server.
pub async fn telegram_bot(config: &Config) -> Result<TelegramBot, String> {
    let token = telegram_token(&config.channel.telegram).map_err(|error| error.to_string())?;
    let api = TelegramApi::new(&config.channel.telegram.api_url, token)?;
    api.get_me().await.map_err(|error| error.to_string())
}

/// E-mail for a single command.
pub fn email(config: &Config) -> Result<Channel, ChannelError> {
    Ok(Channel::email(email_options(config)?))
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
        installer: Some(installer(home)),
        ..WhatsappOptions::new(program(config, home))
    }
}

fn telegram_options(config: &TelegramConfig) -> Result<TelegramOptions, ChannelError> {
    Ok(TelegramOptions {
        api_url: config.api_url.clone(),
        answers_groups: config.groups,
        ..TelegramOptions::new(telegram_token(config)?)
    })
}

/// The token of the bot: from the configuration, else from its file.
fn telegram_token(config: &TelegramConfig) -> Result<SecretString, ChannelError> {
    if let Some(token) = &config.token {
        return Ok(token.clone());
    }
    let invalid = |reason: String| ChannelError::Invalid { reason };
    let Some(path) = &config.token_file else {
        return Err(invalid(
            "Telegram has no token. Run 'hob channel add telegram', or set token under [channel.telegram] in config.toml"
                .to_owned(),
        ));
    };
    read_secret_file(path).map_err(|error| {
        invalid(format!("cannot read [channel.telegram] token_file {}: {error}", path.display()))
    })
}

fn rules(config: &ChannelConfig) -> ReplyRules {
    let rules = ReplyRules {
        agent: match config.default_agent {
            Some(agent) => AgentPreference::Named(agent.as_str().to_owned()),
            None => AgentPreference::None,
        },
        trust: config.trust.clone(),
        allow_from: config.allow_from.clone(),
        messages_per_minute: config.messages_per_minute,
        history: config.history,
        key: config.key.as_deref().map(Into::into),
        pairing: paired_channels(config),
        transcription_model: config.transcription_model.clone(),
    };
    rules_with_email(rules, config.email.authentication_server.is_some())
}

/// The channels on which only approved senders are answered.
fn paired_channels(config: &ChannelConfig) -> BTreeSet<String> {
    let channels = [
        (hob_channels::telegram::CHANNEL, config.telegram.enabled && config.telegram.pairing),
        (EMAIL_CHANNEL, config.email.enabled && config.email.pairing),
    ];
    channels.into_iter().filter(|(_, is_paired)| *is_paired).map(|(name, _)| name.to_owned()).collect()
}

/// A database that cannot be opened is a warning only: messages are answered without it.
fn open_store(storage: &Storage) -> Option<OpenedChannelStore> {
    match open_channel_store(storage) {
        Ok(opened) => Some(opened),
        Err(error) => {
            tracing::warn!(
                %error,
                "conversations of channels are not saved. Repair the database ('hob doctor' checks it), then \
                 restart Hob"
            );
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

    #[test]
    fn the_token_of_telegram_is_in_the_configuration_or_in_a_file() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("token");
        std::fs::write(&file, "1:from-the-file\n").unwrap();
        let token = |config: &TelegramConfig| {
            telegram_token(config).map(|token| secrecy::ExposeSecret::expose_secret(&token).to_owned())
        };
        let mut config = TelegramConfig { token_file: Some(file.clone()), ..TelegramConfig::default() };
        assert_eq!(token(&config).unwrap(), "1:from-the-file");
        config.token = Some("2:from-the-configuration".into());
        assert_eq!(token(&config).unwrap(), "2:from-the-configuration");
        std::fs::remove_file(file).unwrap();
        config.token = None;
        assert!(
            token(&config).unwrap_err().to_string().contains("cannot read [channel.telegram] token_file")
        );
        let none = TelegramConfig::default();
        assert!(token(&none).unwrap_err().to_string().contains("hob channel add telegram"));
    }
}

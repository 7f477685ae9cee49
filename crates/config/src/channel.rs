//! `[channel]`: messaging through a gateway, `[channel.whatsapp]` and `[channel.telegram]`. `[channel.email]` has its own file.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use hob_core::Reach;
use hob_core::defaults::GATEWAY_RECONNECT_INTERVAL;
use secrecy::SecretString;

use crate::agent::{AGENT, AgentName};
use crate::channel_email::EmailChannelConfig;
use crate::kind::{
    COUNT, COUNT_OR_NONE, FLAG, HTTP_URL, OPTIONAL_PATH, OPTIONAL_TEXT, SECONDS, SECRET, SENDERS,
    SENDERS_TRUST, TEXT, WEBSOCKET_URL,
};
use crate::settings_schema::keys_of;

/// Settings of messaging.
#[derive(Debug, Clone)]
pub struct ChannelConfig {
    pub enabled: bool,
    /// WebSocket address of the gateway, without a trailing slash.
    pub gateway_url: String,
    /// Who answers messages; `None` asks the engine directly.
    pub default_agent: Option<AgentName>,
    /// How long to wait before the next attempt to connect.
    pub reconnect_interval: Duration,
    /// The token for the gateway; `None` sends none.
    pub token: Option<SecretString>,
    /// Whether to answer messages, or only receive them.
    pub reply: bool,
    /// How far the tools reach that a sender's messages may make an agent use, by `channel:sender`. Everyone else has `pure`.
    pub trust: BTreeMap<String, Reach>,
    /// Senders, as `channel:sender`, whose messages may also read the memory; all others may not.
    pub allow_from: Vec<String>,
    /// Maximum messages answered per sender and minute.
    pub messages_per_minute: usize,
    /// Earlier messages of a conversation that the agent gets.
    pub history: usize,
    /// The name of the key that pays for answers and limits them; `None` for no limits.
    pub key: Option<String>,
    /// The model that transcribes voice messages; `None` lets Hob choose one.
    pub transcription_model: Option<String>,
    pub whatsapp: WhatsappConfig,
    pub telegram: TelegramConfig,
    pub email: EmailChannelConfig,
}

impl Default for ChannelConfig {
    fn default() -> Self {
        ChannelConfig {
            enabled: false,
            gateway_url: "ws://127.0.0.1:18789/ws".to_owned(),
            default_agent: Some(AgentName::Simple),
            reconnect_interval: GATEWAY_RECONNECT_INTERVAL,
            token: None,
            reply: true,
            trust: BTreeMap::new(),
            allow_from: Vec::new(),
            messages_per_minute: 20,
            history: 20,
            key: None,
            transcription_model: None,
            whatsapp: WhatsappConfig::default(),
            telegram: TelegramConfig::default(),
            email: EmailChannelConfig::default(),
        }
    }
}

keys_of! {
    ChannelConfig {
        enabled: FLAG, "Whether to connect to the gateway.";
        gateway_url: WEBSOCKET_URL, "WebSocket address of the gateway.";
        default_agent: AGENT, "Agent that answers messages; \"\" asks the engine directly.";
        reconnect_interval: SECONDS, "Seconds between attempts to connect.";
        token: SECRET, "Token for the gateway; \"\" for none.";
        reply: FLAG, "Whether to answer messages, or only receive them.";
        trust: SENDERS_TRUST, "Highest permission level of the tools that a sender's messages may use. Senders not listed here have pure.";
        allow_from: SENDERS, "Senders whose messages may also read your memory; all others may not.";
        messages_per_minute: COUNT, "Maximum messages answered per sender and minute.";
        history: COUNT_OR_NONE, "Earlier messages of a conversation that the agent gets.";
        key: OPTIONAL_TEXT, "Name of the key (hob key create) that pays for answers and limits them; \"\" for none.";
        transcription_model: OPTIONAL_TEXT, "Model that transcribes voice messages; \"\" is the first one whose name has whisper or transcribe in it.";
        [whatsapp], "WhatsApp, through a helper process that needs node.";
        [telegram], "Telegram, as a bot.";
        [email], "E-mail, with the account in [mail].";
    }
}

/// Settings of the WhatsApp channel.
#[derive(Debug, Clone)]
pub struct WhatsappConfig {
    pub enabled: bool,
    /// Directory of the session; `None` is the directory `whatsapp` beside the configuration file.
    pub auth_dir: Option<PathBuf>,
    /// The name under which the assistant answers.
    pub assistant_name: String,
    /// Whether the assistant has a number of its own, rather than sharing the user's.
    pub assistant_has_own_number: bool,
}

impl Default for WhatsappConfig {
    fn default() -> Self {
        WhatsappConfig {
            enabled: false,
            auth_dir: None,
            assistant_name: "Hob".to_owned(),
            assistant_has_own_number: false,
        }
    }
}

keys_of! {
    WhatsappConfig {
        enabled: FLAG, "Whether to connect to WhatsApp. Run 'hob channel login whatsapp' first.";
        auth_dir: OPTIONAL_PATH, "Directory of the session; \"\" is 'whatsapp' next to this file.";
        assistant_name: TEXT, "Name of the assistant in messages.";
        assistant_has_own_number: FLAG, "Whether the assistant has its own phone number.";
    }
}

/// Settings of the Telegram channel.
#[derive(Debug, Clone)]
pub struct TelegramConfig {
    pub enabled: bool,
    /// The token of the bot; `None` reads it from `token_file`. `HOB_TELEGRAM_TOKEN` overrides both.
    pub token: Option<SecretString>,
    /// A file with the token and nothing else.
    pub token_file: Option<PathBuf>,
    /// Whether to answer messages in groups that mention the bot.
    pub groups: bool,
    /// Whether to answer only senders whom the owner has approved.
    pub pairing: bool,
    /// Address of the Bot API, without a trailing slash.
    pub api_url: String,
}

impl Default for TelegramConfig {
    fn default() -> Self {
        TelegramConfig {
            enabled: false,
            token: None,
            token_file: None,
            groups: true,
            pairing: true,
            api_url: "https://api.telegram.org".to_owned(),
        }
    }
}

keys_of! {
    TelegramConfig {
        enabled: FLAG, "Whether to connect to Telegram. 'hob channel add telegram' sets this and the token.";
        token: SECRET, "Token of the bot, from @BotFather; \"\" reads token_file. HOB_TELEGRAM_TOKEN overrides both.";
        token_file: OPTIONAL_PATH, "File that contains the token; \"\" for none.";
        groups: FLAG, "Whether to answer messages in groups that mention the bot.";
        pairing: FLAG, "Whether to answer only senders whom you have approved with 'hob channel approve'.";
        api_url: HTTP_URL, "Address of Telegram's Bot API.";
    }
}

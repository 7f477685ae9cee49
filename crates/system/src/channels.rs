//! The channels of the house: made from the configuration, and connected to whoever answers.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use hob_channel::whatsapp::{Installer, Program};
use hob_channel::{Bridge, BridgeOptions, Handler, Ledger, Recent, Switchboard, Whatsapp, WhatsappOptions};
use hob_config::{ChannelConfig, Config, ReachKey};
use hob_core::{AgentPreference, ChannelError, Channels, EventBus, NoChannels, Reach};
use hob_db::Database;
use hob_store::{Conversations, HOB_MIGRATIONS};

use crate::inbound::{Inbound, InboundRules, StoredLedger};
use crate::record::DATABASE;
use crate::system::System;

pub use hob_channel::whatsapp::{InstallError, LoginError, LoginStep, NotStarted, login};
pub use hob_channel::{Bridge as GatewayBridge, Whatsapp as WhatsappChannel};

/// Held by the one Hob that answers messages.
const LOCK: &str = "channels.lock";

/// The channels, and what it takes to answer on them.
pub struct HouseChannels {
    switchboard: Arc<Switchboard>,
    rules: InboundRules,
    reply: bool,
    conversations: Option<Conversations>,
    home: PathBuf,
    /// Held while this Hob is the one that answers.
    lock: Mutex<Option<File>>,
}

impl HouseChannels {
    /// Makes the channels that are switched on, and connects none yet; `None` when there are none.
    pub fn open(config: &Config, home: &Path, bus: &EventBus) -> Result<Option<Self>, ChannelError> {
        let channel = &config.channel;
        if !channel.enabled && !channel.whatsapp.enabled {
            return Ok(None);
        }
        let conversations = open_conversations(home);
        let ledger: Arc<dyn Ledger> = match conversations.clone() {
            Some(conversations) => Arc::new(StoredLedger::new(conversations)),
            None => Arc::new(Recent::default()),
        };
        let gateway = channel.enabled.then(|| {
            Bridge::new(BridgeOptions {
                events: bus.clone(),
                ledger: Arc::clone(&ledger),
                ..bridge_options(channel, &channel.gateway_url)
            })
        });
        let whatsapp = channel.whatsapp.enabled.then(|| {
            Whatsapp::new(WhatsappOptions {
                events: bus.clone(),
                ledger: Arc::clone(&ledger),
                ..whatsapp_options(config, home)
            })
        });
        Ok(Some(HouseChannels {
            switchboard: Arc::new(Switchboard { gateway: gateway.transpose()?, whatsapp }),
            rules: rules(channel),
            reply: channel.reply,
            conversations,
            home: home.to_owned(),
            lock: Mutex::default(),
        }))
    }

    /// What the rest of the house sends through.
    pub fn contract(&self) -> Arc<dyn Channels> {
        Arc::clone(&self.switchboard) as Arc<dyn Channels>
    }

    /// Connects, and answers what comes in. Where another Hob does that already, this one only sends.
    pub fn listen(&self, system: &Arc<System>) {
        match claim(&self.home) {
            Claim::Taken => {
                tracing::warn!("another Hob answers messages already; this one only sends");
                return;
            }
            Claim::Ours(lock) => *self.lock.lock().unwrap_or_else(PoisonError::into_inner) = lock,
        }
        if self.reply {
            let inbound = Inbound::new(system, self.rules.clone(), self.conversations.clone());
            self.switchboard.on_message(&(Arc::new(inbound) as Arc<dyn Handler>));
        }
        self.switchboard.start();
    }

    /// Disconnects. What was taken in and not answered is answered next time.
    pub async fn close(&self) {
        self.switchboard.close().await;
        *self.lock.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Whether this Hob may answer.
enum Claim {
    Ours(Option<File>),
    Taken,
}

/// The contract of channels that may not be there.
pub(crate) fn contract(channels: Option<&HouseChannels>) -> Arc<dyn Channels> {
    channels.map_or_else(|| Arc::new(NoChannels) as Arc<dyn Channels>, HouseChannels::contract)
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
    hob_channel::whatsapp::is_ours(target)
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
        trust: config.trust.iter().map(|(sender, trust)| (sender.clone(), reach(*trust))).collect(),
        allow_from: config.allow_from.clone(),
        messages_per_minute: config.messages_per_minute,
        history: config.history,
    }
}

fn reach(key: ReachKey) -> Reach {
    match key {
        ReachKey::Pure => Reach::Pure,
        ReachKey::Read => Reach::Read,
        ReachKey::Act => Reach::Act,
    }
}

/// Conversations are worth a warning, not a refusal: without them messages are answered all the same.
fn open_conversations(home: &Path) -> Option<Conversations> {
    match Database::open(&home.join(DATABASE), HOB_MIGRATIONS) {
        Ok(store) => Some(Conversations::new(store)),
        Err(error) => {
            tracing::warn!(%error, "conversations are not remembered");
            None
        }
    }
}

/// Claims the right to answer. Where it cannot be found out whether somebody has it, nobody does.
fn claim(home: &Path) -> Claim {
    let lock = std::fs::create_dir_all(home).and_then(|()| File::create(home.join(LOCK)));
    match lock.map(|lock| (lock.try_lock(), lock)) {
        Ok((Err(std::fs::TryLockError::WouldBlock), _)) => Claim::Taken,
        Ok((_, lock)) => Claim::Ours(Some(lock)),
        Err(error) => {
            tracing::debug!(%error, "cannot see whether another Hob answers messages");
            Claim::Ours(None)
        }
    }
}

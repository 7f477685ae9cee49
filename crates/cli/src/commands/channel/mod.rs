//! `hob channel`: sends messages, and manages channels and senders. Connects to the gateway, to WhatsApp, to Telegram and to mail servers
//! itself, without a server or an engine.

mod add_email;
mod add_telegram;
mod blocking;
mod list;
mod login;
mod send;
mod senders;
mod status;

use std::process::ExitCode;

use anyhow::{Error, Result, anyhow};
use hob_channels::telegram::CHANNEL as TELEGRAM_CHANNEL;
use hob_channels::{ChannelError, EMAIL_CHANNEL};
use hob_config::{ChannelConfig, Config, LocalSetting, MailConfig};

use crate::args::ChannelCommand;
use crate::commands::block_on;
use crate::settings;
use crate::signals::Signals;
use add_telegram::FirstMessage;

/// For users who never configured a gateway: an error about the default address would mislead them.
const NO_GATEWAY: &str = "no channel is configured. Connect one with 'hob channel add telegram' or 'hob channel add email'. For a \
                          gateway, set 'enabled = true' and gateway_url under [channel] in config.toml, or pass one with --gateway";

/// The channels that need no gateway and can be sent to by name.
fn direct_channels(config: &Config) -> Vec<&'static str> {
    let ChannelConfig { telegram, email, .. } = &config.channel;
    let channels = [(telegram.enabled, TELEGRAM_CHANNEL), (email.enabled, EMAIL_CHANNEL)];
    channels.into_iter().filter_map(|(is_on, name)| is_on.then_some(name)).collect()
}

/// Whether the command line or the configuration names a gateway.
fn is_gateway_wanted(config: &Config, url: Option<&str>) -> bool {
    let usual = ChannelConfig::default().gateway_url;
    url.is_some() || config.channel.enabled || config.channel.gateway_url != usual
}

/// What to do about a gateway that does not work.
const CHECK_GATEWAY: &str = "Check the gateway, and [channel] gateway_url and token";

/// The error of the gateway, or that none is configured.
fn explain(error: ChannelError, config: &Config, url: Option<&str>) -> Error {
    match error {
        ChannelError::Undelivered { .. } | ChannelError::Unlisted { .. }
            if !is_gateway_wanted(config, url) =>
        {
            anyhow!(NO_GATEWAY)
        }
        ChannelError::Undelivered { .. } | ChannelError::Unlisted { .. } if url.is_none() => {
            anyhow!("{error}. {CHECK_GATEWAY}")
        }
        error => error.into(),
    }
}

/// The settings that let agents read the mailbox of an address, after a login. Asks for its server and its password.
pub fn mailbox_settings(known: &MailConfig, address: &str) -> Result<Vec<LocalSetting>> {
    block_on(add_email::mailbox_settings(known, address, None))
}

pub fn run(command: ChannelCommand) -> Result<ExitCode> {
    let config = settings::load()?;
    let home = settings::home()?;
    block_on(async {
        let mut signals = Signals::listen()?;
        let work = async {
            match command {
                ChannelCommand::List { gateway, json } => {
                    list::run(&config, gateway.as_deref(), json.into()).await
                }
                ChannelCommand::Send(args) => send::run(&config, &home, &args).await,
                ChannelCommand::Status { gateway, json } => {
                    status::run(&config, gateway.as_deref(), json.into()).await
                }
                ChannelCommand::Login { channel: _ } => login::run(&config, &home).await,
                ChannelCommand::Add(args) if args.channel == EMAIL_CHANNEL => {
                    add_email::run(&config, &args).await
                }
                ChannelCommand::Add(args) if args.read_only => {
                    Err(anyhow!("--read-only is for e-mail: a bot has no mailbox to read."))
                }
                ChannelCommand::Add(args) => {
                    let first_message = if args.no_wait { FirstMessage::Skip } else { FirstMessage::Await };
                    add_telegram::run(&config, first_message).await
                }
                ChannelCommand::Approve { code, json } => senders::approve(&config, &code, json.into()).await,
                ChannelCommand::Senders { json } => senders::list(&config, json.into()).await,
                ChannelCommand::RemoveSender { sender } => senders::remove(&config, &sender).await,
            }
        };
        // Dropping the work disconnects, and ends the subprocess if there is one.
        tokio::select! {
            done = work => done,
            stop = signals.next() => Ok(stop.exit_code()),
        }
    })
}

//! `hob channel`: sends messages. Connects to the gateway or to WhatsApp itself, without a server or an engine.

mod list;
mod login;
mod send;
mod status;

use std::process::ExitCode;

use anyhow::{Error, Result, anyhow};
use hob_channels::ChannelError;
use hob_config::{ChannelConfig, Config};

use crate::args::ChannelCommand;
use crate::commands::block_on;
use crate::settings;
use crate::signals::Signals;

/// For users who never configured a gateway: an error about the default address would mislead them.
const NO_GATEWAY: &str = "no gateway is configured. Set 'enabled = true' and gateway_url under [channel] in config.toml, \
                          or pass one with --gateway";

/// Whether the command line or the configuration names a gateway.
fn is_gateway_wanted(config: &Config, url: Option<&str>) -> bool {
    let usual = ChannelConfig::default().gateway_url;
    url.is_some() || config.channel.enabled || config.channel.gateway_url != usual
}

/// The error of the gateway, or that none is configured.
fn explain(error: ChannelError, config: &Config, url: Option<&str>) -> Error {
    match error {
        ChannelError::Undelivered { .. } | ChannelError::Unlisted { .. }
            if !is_gateway_wanted(config, url) =>
        {
            anyhow!(NO_GATEWAY)
        }
        error => error.into(),
    }
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
            }
        };
        // Dropping the work disconnects, and ends the subprocess if there is one.
        tokio::select! {
            done = work => done,
            stop = signals.next() => Ok(stop.exit_code()),
        }
    })
}

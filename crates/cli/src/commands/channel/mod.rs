//! `hob channel`: messages by hand. Talks to the gateway, or to WhatsApp, itself: it needs neither a server nor an engine.

mod list;
mod login;
mod qr;
mod send;
mod status;

use std::process::ExitCode;

use anyhow::Result;

use crate::args::ChannelCommand;
use crate::commands::block_on;
use crate::settings;
use crate::signals::Signals;

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
        // Dropping the work hangs up, and ends the subprocess where there is one.
        tokio::select! {
            done = work => done,
            stop = signals.next() => Ok(stop.exit_code()),
        }
    })
}

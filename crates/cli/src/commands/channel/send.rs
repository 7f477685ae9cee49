//! `hob channel send`.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, bail};
use hob_app::startup::channels::{self, ChannelParts, open_channels};
use hob_channels::{ChannelService, ChannelStatus, ChannelStore, is_email_target, telegram, whatsapp};
use hob_config::Config;
use hob_core::EventBus;
use serde_json::json;

use super::{direct_channels, explain};
use crate::args::ChannelSendArgs;
use crate::output;
use crate::output::progress::Spinner;
use crate::output::text::one_line;
use crate::settings;

pub async fn run(config: &Config, home: &Path, args: &ChannelSendArgs) -> Result<ExitCode> {
    let is_direct = args.gateway.is_none();
    let channels = if is_direct { configured(config, home, args)? } else { None };
    let target = match &channels {
        Some(channels) if is_to_direct(config, args) => {
            channels.resolve_target(&args.target, args.conversation.as_deref()).await?
        }
        _ => args.target.clone(),
    };
    if is_direct && config.channel.whatsapp.enabled && whatsapp::is_ours(&target) {
        over_whatsapp(config, home, args, channels.as_ref().and_then(|channels| channels.store())).await?
    } else if is_direct && config.channel.telegram.enabled && telegram::is_ours(&target) {
        let _waiting = Spinner::start("sending");
        channels::telegram(config)?.send(&target, &args.message, args.conversation.as_deref()).await?;
    } else if is_direct && config.channel.email.enabled && is_email_target(&target) {
        let _waiting = Spinner::start("sending");
        channels::email(config)?.send(&target, &args.message, args.conversation.as_deref()).await?;
    } else {
        over_the_gateway(config, args).await?
    }
    if let Some(channels) = channels {
        channels.note_sent(&target, &args.message, args.conversation.as_deref()).await;
    }
    if args.json {
        output::json(&json!({ "status": "sent", "target": target }))?;
    } else {
        output::line(format_args!("sent to {}", one_line(&target)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The channels of the configuration: they know the recipients, and save what is sent.
fn configured(config: &Config, home: &Path, args: &ChannelSendArgs) -> Result<Option<Arc<ChannelService>>> {
    let opened = settings::databases(config).and_then(|databases| {
        let parts = ChannelParts { storage: databases.hob, events: EventBus::new() };
        Ok(open_channels(config, home, parts)?)
    });
    match opened {
        // A gateway needs no other channel and no database.
        Err(_) if !is_to_direct(config, args) => Ok(None),
        opened => opened,
    }
}

/// Whether the target is on a channel that Hob connects to itself. Without a recipient, it means the only approved sender.
fn is_to_direct(config: &Config, args: &ChannelSendArgs) -> bool {
    let channel = args.target.split_once(':').map_or(args.target.as_str(), |(channel, _)| channel);
    direct_channels(config).contains(&channel)
}

async fn over_the_gateway(config: &Config, args: &ChannelSendArgs) -> Result<()> {
    let client = channels::gateway(&config.channel, args.gateway.as_deref())?;
    let _waiting = Spinner::start("sending");
    let sent = client.send(&args.target, &args.message, args.conversation.as_deref()).await;
    sent.map_err(|error| explain(error, config, args.gateway.as_deref()))
}

async fn over_whatsapp(
    config: &Config,
    home: &Path,
    args: &ChannelSendArgs,
    store: Option<Arc<dyn ChannelStore>>,
) -> Result<()> {
    if store.is_none() {
        tracing::warn!(
            "WhatsApp messages that arrive while this one is sent are dropped. 'hob doctor' checks the \
             database"
        );
    }
    let whatsapp = channels::whatsapp(config, home, store);
    let status = {
        let _waiting = Spinner::start("connecting to WhatsApp");
        whatsapp.connect().await
    };
    if status != ChannelStatus::Connected {
        let problem = whatsapp.report().problem;
        whatsapp.close().await;
        bail!(
            "{}. While 'hob serve' is running, send through it: POST /v1/channels/send",
            problem.unwrap_or_else(|| "WhatsApp cannot be reached; check the network".to_owned())
        );
    }
    let sent = whatsapp.send(&args.target, &args.message, args.conversation.as_deref()).await;
    whatsapp.close().await;
    Ok(sent?)
}

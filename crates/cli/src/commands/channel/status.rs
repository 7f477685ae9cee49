//! `hob channel status`: connects once. The exit code is 0 if that works, and 1 if not.

use std::process::ExitCode;

use anyhow::Result;
use hob_app::startup::channels;
use hob_channels::ChannelStatus;
use hob_config::Config;
use serde_json::json;

use super::{NO_GATEWAY, is_gateway_wanted};
use crate::output;
use crate::output::OutputFormat;
use crate::output::progress::Spinner;
use crate::output::table::print_facts;
use crate::output::text::one_line;

pub async fn run(config: &Config, url: Option<&str>, format: OutputFormat) -> Result<ExitCode> {
    if config.channel.telegram.enabled && !is_gateway_wanted(config, url) {
        return of_telegram(config, format).await;
    }
    let client = channels::gateway(&config.channel, url)?;
    let (report, names) = {
        let _waiting = Spinner::start("connecting to the gateway");
        client.connect().await;
        (client.report(), client.list_channels().await.unwrap_or_default())
    };
    client.close().await;
    let connected = report.status == ChannelStatus::Connected;
    let (status, problem) = if connected || is_gateway_wanted(config, url) {
        (report.status, report.problem)
    } else {
        (ChannelStatus::NotConfigured, Some(NO_GATEWAY.to_owned()))
    };
    match format {
        OutputFormat::Json => output::json(&json!({
            "status": status.as_str(),
            "connected": connected,
            "gateway_url": report.gateway_url,
            "channels": names,
            "message": problem,
        }))?,
        OutputFormat::Text => {
            let names = if names.is_empty() { "none".to_owned() } else { one_line(&names.join(", ")) };
            print_facts(&[
                ("Status", status.to_string()),
                ("Gateway", report.gateway_url.clone()),
                ("Channels", names),
                ("WhatsApp", whatsapp_line(config).to_owned()),
                ("Telegram", telegram_line(config).to_owned()),
            ])?;
            if let Some(problem) = problem {
                output::warning(problem);
            }
        }
    }
    Ok(if connected { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The status of Telegram where there is no gateway.
async fn of_telegram(config: &Config, format: OutputFormat) -> Result<ExitCode> {
    let bot = {
        let _waiting = Spinner::start("asking Telegram");
        channels::telegram_bot(config).await
    };
    let status = if bot.is_ok() { ChannelStatus::Connected } else { ChannelStatus::Error };
    match format {
        OutputFormat::Json => output::json(&json!({
            "status": status.as_str(),
            "connected": bot.is_ok(),
            "gateway_url": "",
            "channels": ["telegram"],
            "message": bot.as_ref().err(),
        }))?,
        OutputFormat::Text => {
            let telegram = match &bot {
                Ok(bot) => format!("on, as @{}; 'hob serve' receives its messages", one_line(&bot.username)),
                Err(_) => "on".to_owned(),
            };
            print_facts(&[
                ("Status", status.to_string()),
                ("Telegram", telegram),
                ("WhatsApp", whatsapp_line(config).to_owned()),
            ])?;
            if let Err(problem) = &bot {
                output::warning(problem);
            }
        }
    }
    Ok(if bot.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn whatsapp_line(config: &Config) -> &'static str {
    if config.channel.whatsapp.enabled {
        "on; 'hob serve' connects to it"
    } else {
        "off ([channel.whatsapp] enabled)"
    }
}

fn telegram_line(config: &Config) -> &'static str {
    if config.channel.telegram.enabled {
        "on; 'hob serve' connects to it"
    } else {
        "off (run 'hob channel add telegram')"
    }
}

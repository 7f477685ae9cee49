//! `hob channel status`: connects once. The exit code is 0 if that works, and 1 if not.

use std::process::ExitCode;

use anyhow::Result;
use hob_app::startup::channels;
use hob_app::startup::mail::{check_mailbox, check_sending};
use hob_channels::ChannelStatus;
use hob_config::Config;
use serde_json::json;

use super::{NO_GATEWAY, direct_channels, is_gateway_wanted};
use crate::failure;
use crate::output;
use crate::output::OutputFormat;
use crate::output::progress::Spinner;
use crate::output::table::print_facts;
use crate::output::text::one_line;

pub async fn run(config: &Config, url: Option<&str>, format: OutputFormat) -> Result<ExitCode> {
    if !direct_channels(config).is_empty() && !is_gateway_wanted(config, url) {
        return without_gateway(config, format).await;
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
            // The default address is not the user's.
            let gateway = match status {
                ChannelStatus::NotConfigured => "none".to_owned(),
                _ => report.gateway_url.clone(),
            };
            let names = if names.is_empty() { "none".to_owned() } else { one_line(&names.join(", ")) };
            print_facts(&[
                ("Status", status.to_string()),
                ("Gateway", gateway),
                ("Channels", names),
                ("Telegram", telegram_line(config).to_owned()),
                ("E-mail", email_line(config).to_owned()),
                ("WhatsApp", whatsapp_line(config).to_owned()),
            ])?;
            if let Some(problem) = problem {
                output::warning(problem);
            }
        }
    }
    Ok(if connected { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The status of Telegram and of e-mail where there is no gateway.
async fn without_gateway(config: &Config, format: OutputFormat) -> Result<ExitCode> {
    let telegram = async {
        match config.channel.telegram.enabled {
            true => Some(channels::telegram_bot(config).await),
            false => None,
        }
    };
    let email = async {
        match config.channel.email.enabled {
            true => check_email(config).await.err().map(|error| failure::explain(&error)),
            false => None,
        }
    };
    let (bot, email_problem) = {
        let _waiting = Spinner::start("asking Telegram and the mail servers");
        tokio::join!(telegram, email)
    };
    let telegram = match &bot {
        Some(Ok(bot)) => format!("on, as @{}; 'hob serve' receives its messages", one_line(&bot.username)),
        Some(Err(_)) | None => telegram_line(config).to_owned(),
    };
    let problems: Vec<String> = bot.and_then(Result::err).into_iter().chain(email_problem).collect();
    let is_good = problems.is_empty();
    let status = if is_good { ChannelStatus::Connected } else { ChannelStatus::Error };
    match format {
        OutputFormat::Json => output::json(&json!({
            "status": status.as_str(),
            "connected": is_good,
            "gateway_url": "",
            "channels": direct_channels(config),
            "message": (!is_good).then(|| problems.join("; ")),
        }))?,
        OutputFormat::Text => {
            print_facts(&[
                ("Status", status.to_string()),
                ("Telegram", telegram),
                ("E-mail", email_line(config).to_owned()),
                ("WhatsApp", whatsapp_line(config).to_owned()),
            ])?;
            for problem in &problems {
                output::warning(problem);
            }
        }
    }
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Logs in to both mail servers.
async fn check_email(config: &Config) -> Result<()> {
    check_mailbox(&config.mail).await?;
    check_sending(&config.mail).await?;
    Ok(())
}

fn email_line(config: &Config) -> &'static str {
    if config.channel.email.enabled {
        "on; 'hob serve' receives its messages"
    } else {
        "off (run 'hob channel add email')"
    }
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

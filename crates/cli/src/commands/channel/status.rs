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
            ])?;
            if let Some(problem) = problem {
                output::warning(problem);
            }
        }
    }
    Ok(if connected { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn whatsapp_line(config: &Config) -> &'static str {
    if config.channel.whatsapp.enabled {
        "on; 'hob serve' connects to it"
    } else {
        "off ([channel.whatsapp] enabled)"
    }
}

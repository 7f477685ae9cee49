//! `hob channel list`.

use std::process::ExitCode;

use anyhow::Result;
use hob_app::startup::channels;
use hob_config::Config;

use super::{direct_channels, explain, is_gateway_wanted};
use crate::output;
use crate::output::OutputFormat;
use crate::output::progress::Spinner;
use crate::output::text::one_line;

pub async fn run(config: &Config, url: Option<&str>, format: OutputFormat) -> Result<ExitCode> {
    let direct = if url.is_none() { direct_channels(config) } else { Vec::new() };
    let mut names = if !direct.is_empty() && !is_gateway_wanted(config, url) {
        Vec::new()
    } else {
        let client = channels::gateway(&config.channel, url)?;
        let _waiting = Spinner::start("asking the gateway");
        client.list_channels().await.map_err(|error| explain(error, config, url))?
    };
    for channel in direct {
        if !names.iter().any(|name| name == channel) {
            names.push(channel.to_owned());
        }
    }
    match format {
        OutputFormat::Json => output::json(&names)?,
        OutputFormat::Text if names.is_empty() => output::note("The gateway has no channels."),
        OutputFormat::Text => {
            for name in names {
                output::line(one_line(&name))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

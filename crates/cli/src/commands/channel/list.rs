//! `hob channel list`.

use std::process::ExitCode;

use anyhow::Result;
use hob_app::startup::channels;
use hob_channels::telegram::CHANNEL;
use hob_config::Config;

use super::{explain, is_gateway_wanted};
use crate::output;
use crate::output::OutputFormat;
use crate::output::progress::Spinner;
use crate::output::text::one_line;

pub async fn run(config: &Config, url: Option<&str>, format: OutputFormat) -> Result<ExitCode> {
    let has_telegram = config.channel.telegram.enabled && url.is_none();
    let mut names = if has_telegram && !is_gateway_wanted(config, url) {
        Vec::new()
    } else {
        let client = channels::gateway(&config.channel, url)?;
        let _waiting = Spinner::start("asking the gateway");
        client.list_channels().await.map_err(|error| explain(error, config, url))?
    };
    if has_telegram && !names.iter().any(|name| name == CHANNEL) {
        names.push(CHANNEL.to_owned());
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

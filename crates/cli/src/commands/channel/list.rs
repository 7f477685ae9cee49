//! `hob channel list`.

use std::process::ExitCode;

use anyhow::Result;
use hob_config::Config;
use hob_system::channels;

use super::explain;
use crate::commands::model::Format;
use crate::output;
use crate::output::progress::Spinner;
use crate::output::text::one_line;

pub async fn run(config: &Config, url: Option<&str>, format: Format) -> Result<ExitCode> {
    let bridge = channels::gateway(&config.channel, url)?;
    let names = {
        let _waiting = Spinner::start("asking the gateway");
        bridge.list_channels().await.map_err(|error| explain(error, config, url))?
    };
    match format {
        Format::Json => output::json(&names)?,
        Format::People if names.is_empty() => output::note("The gateway has no channels."),
        Format::People => {
            for name in names {
                output::line(one_line(&name))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

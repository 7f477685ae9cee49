//! `hob channel list`.

use std::process::ExitCode;

use anyhow::Result;
use hob_app::startup::channels;
use hob_config::Config;

use super::explain;
use crate::output;
use crate::output::OutputFormat;
use crate::output::progress::Spinner;
use crate::output::text::one_line;

pub async fn run(config: &Config, url: Option<&str>, format: OutputFormat) -> Result<ExitCode> {
    let client = channels::gateway(&config.channel, url)?;
    let names = {
        let _waiting = Spinner::start("asking the gateway");
        client.list_channels().await.map_err(|error| explain(error, config, url))?
    };
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

//! `hob memory forget`.

use anyhow::{Result, bail};
use hob_config::Config;

use crate::args::Network;
use crate::output;
use crate::output::number::counted;

pub async fn run(config: &Config, path: &str) -> Result<()> {
    let forgotten = super::documents(config, Network::Offline)?.forget(path).await?;
    if forgotten.sources == 0 {
        bail!(
            "nothing is remembered of {path}. Write the path as it was indexed; 'hob memory search' shows paths."
        );
    }
    let number = |count: u64, noun| counted(usize::try_from(count).unwrap_or(usize::MAX), noun);
    output::line(format_args!(
        "Forgot {}, {}.",
        number(forgotten.sources, "source"),
        number(forgotten.chunks, "passage")
    ))?;
    Ok(())
}

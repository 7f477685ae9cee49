//! `hob memory forget`.

use anyhow::{Result, bail};
use hob_config::Config;

use crate::args::NetworkAccess;
use crate::output;
use crate::output::number::counted;

pub async fn run(config: &Config, path: &str) -> Result<()> {
    let forgotten = super::documents(config, NetworkAccess::Offline)?.forget(path).await?;
    if forgotten.sources == 0 {
        bail!("{path} is not in memory. Use the path as it was indexed; 'hob memory search' shows paths.");
    }
    output::line(format_args!(
        "Removed {}, {}.",
        counted(forgotten.sources, "source"),
        counted(forgotten.chunks, "passage")
    ))?;
    Ok(())
}

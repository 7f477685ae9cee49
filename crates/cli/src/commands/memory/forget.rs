//! `hob memory forget`.

use anyhow::{Result, bail};
use hob_config::Config;
use hob_core::CollectionName;

use crate::args::NetworkAccess;
use crate::change_notice::{ChangedPart, tell_servers};
use crate::output;
use crate::output::number::counted;

pub async fn run(config: &Config, path: &str, from: Option<CollectionName>) -> Result<()> {
    let documents = super::documents(config, NetworkAccess::Offline)?;
    super::selected(&documents, from.iter().cloned().collect()).await?;
    let collection = from.clone().unwrap_or_default();
    let forgotten = documents.forget(path, from).await?;
    if forgotten.sources == 0 {
        bail!("{path} is not in memory. Use the path as it was indexed; 'hob memory search' shows paths.");
    }
    tell_servers(ChangedPart::Documents(collection.as_str()));
    output::line(format_args!(
        "Removed {}, {}.",
        counted(forgotten.sources, "source"),
        counted(forgotten.chunks, "passage")
    ))?;
    Ok(())
}

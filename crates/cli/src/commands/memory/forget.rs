//! `hob memory forget`.

use std::path::Path;

use anyhow::{Result, bail};
use hob_app::startup::memory::open_library;
use hob_config::Config;
use hob_core::{CollectionName, CollectionSet};

use crate::args::NetworkAccess;
use crate::change_notice::{ChangedPart, tell_servers};
use crate::output;
use crate::output::number::counted;
use crate::settings;

pub async fn run(config: &Config, path: &str, from: Option<CollectionName>) -> Result<()> {
    let documents = super::documents(config, NetworkAccess::Offline)?;
    super::selected(&documents, from.iter().cloned().collect()).await?;
    let collection = from.clone().unwrap_or_default();
    // A document of a watched folder would come back, and an upload has a copy in Hob's home.
    let library = open_library(&settings::home()?, documents);
    let had_file = Path::new(path).exists();
    let forgotten = library.forget(path, from.map_or(CollectionSet::All, CollectionSet::of)).await?;
    // An upload without text has no source.
    let is_deleted = had_file && !Path::new(path).exists();
    if forgotten.sources == 0 && !is_deleted {
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

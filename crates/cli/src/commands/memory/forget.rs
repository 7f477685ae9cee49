//! `hob memory forget`.

use anyhow::{Result, bail};
use hob_app::startup::memory::open_document_library;
use hob_config::Config;
use hob_core::{CollectionName, CollectionSet};
use hob_memory::ForgetReport;

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
    let library = open_document_library(&settings::home()?, documents);
    let forgotten = library.forget(path, from.map_or(CollectionSet::All, CollectionSet::of)).await?;
    if forgotten == ForgetReport::default() {
        bail!("{path} is not in memory. Use the path as it was indexed; 'hob memory search' shows paths.");
    }
    tell_servers(ChangedPart::Documents(collection.as_str()));
    let ForgetReport { sources, chunks, folders, files } = forgotten;
    let mut removed = format!("Removed {}, {}", counted(sources, "source"), counted(chunks, "passage"));
    for (count, what) in [(folders, "folder"), (files, "uploaded file")] {
        if count > 0 {
            removed += &format!(", {}", counted(count, what));
        }
    }
    output::line(format_args!("{removed}."))?;
    Ok(())
}

//! The list of models that can be pulled by name: the two that Hob itself needs, and those of the data file `models.json`.
//!
//! Sizes and parameters in the file are approximate: the hub has the exact ones, with a checksum, at the download.

mod entry;
mod pinned;

use std::borrow::Cow;
use std::sync::LazyLock;

use serde::Deserialize;

pub use self::entry::{
    BertPublication, CatalogueEntry, HubRevision, KvShape, ModelAbility, ModelSource, PinnedModel, Projector,
    PublishedFile, PublishedForm, PythonPackage,
};
pub use self::pinned::{EMBEDDING, STARTER};

/// The data file.
const FILE: &str = include_str!("models.json");

static FROM_FILE: LazyLock<Vec<CatalogueEntry>> = LazyLock::new(|| {
    let read: Result<Vec<FileEntry>, _> = serde_json::from_str(FILE);
    // A test reads the file, so this does not happen in a tested build.
    let entries = read.unwrap_or_else(|error| {
        tracing::error!(%error, "the list of models in this build cannot be read. Install Hob again");
        Vec::new()
    });
    entries.into_iter().map(CatalogueEntry::from).collect()
});

/// An entry as the file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileEntry {
    short_name: &'static str,
    name: &'static str,
    #[serde(default, borrow)]
    also: Vec<&'static str>,
    about: &'static str,
    repo: &'static str,
    file: &'static str,
    license: &'static str,
    size: u64,
    parameters: u64,
    active_parameters: Option<u64>,
    context: u64,
    kv: Option<KvShape>,
    can: Vec<ModelAbility>,
    projector: Option<Projector>,
    #[serde(default)]
    offered: bool,
}

impl From<FileEntry> for CatalogueEntry {
    fn from(entry: FileEntry) -> Self {
        CatalogueEntry {
            name: entry.name,
            short_name: entry.short_name,
            also: Cow::Owned(entry.also),
            about: entry.about,
            license: entry.license,
            size: entry.size,
            parameters: entry.parameters,
            active_parameters: entry.active_parameters,
            context: entry.context,
            kv: entry.kv,
            can: Cow::Owned(entry.can),
            projector: entry.projector,
            is_offered: entry.offered,
            source: ModelSource::Hub { repo: entry.repo, wanted: entry.file },
        }
    }
}

/// All entries.
pub fn catalogue() -> impl Iterator<Item = &'static CatalogueEntry> {
    [STARTER, EMBEDDING].into_iter().chain(FROM_FILE.iter())
}

/// The entry with this name, ignoring case and the tag `latest`.
pub fn find(name: &str) -> Option<&'static CatalogueEntry> {
    let name = name.strip_suffix(":latest").unwrap_or(name);
    catalogue().find(|entry| entry.is_named(name))
}

/// The smallest model with an ability.
pub fn smallest_with(ability: ModelAbility) -> Option<&'static CatalogueEntry> {
    catalogue().filter(|entry| entry.can(ability)).min_by_key(|entry| entry.total_size())
}

/// Whether this is a name of the starter model.
pub fn is_starter(name: &str) -> bool {
    find(name).is_some_and(|entry| entry.name == STARTER.name)
}

/// The id of a model with a tag, such as `qwen3:8b`. Other names may be those of files, and stay as they are.
pub fn tagged_id(name: &str) -> &str {
    let listed = if name.contains(':') { find(name) } else { None };
    listed.map_or(name, |entry| entry.name)
}

#[cfg(test)]
#[path = "catalogue_tests.rs"]
mod tests;

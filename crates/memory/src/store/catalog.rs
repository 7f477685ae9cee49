//! What the memory has, for people: documents, skipped files, collections, and the directories that are kept up to date.
//!
//! Every call blocks.

use std::time::SystemTime;

use hob_core::time::Moment;
use hob_core::{CollectionName, CollectionSet};
use hob_db::DbResult;
use serde::Serialize;

use super::columns::range_below;
use crate::types::IndexWarning;

pub trait DocumentCatalog: Send + Sync {
    /// Documents that have text, by path.
    fn documents(&self, collections: &CollectionSet, page: &CatalogPage) -> DbResult<Vec<StoredDocument>>;

    /// Documents and notes that were changed since then, the latest first.
    fn recent(
        &self,
        collections: &CollectionSet,
        since: SystemTime,
        limit: usize,
    ) -> DbResult<Vec<RecentDocument>>;

    /// Files that were not added, by path and collection.
    fn skipped(&self, collections: &CollectionSet, page: &CatalogPage) -> DbResult<Vec<SkippedFile>>;

    /// The collections that have documents, skipped files or folders, by name.
    fn collections(&self, collections: &CollectionSet) -> DbResult<Vec<CollectionSummary>>;

    /// Replaces the skipped files of a collection at `path` and below. What is below a path of `spared` stays.
    fn replace_skipped(
        &self,
        collection: &CollectionName,
        path: &str,
        spared: &[String],
        skipped: &[IndexWarning],
        now: SystemTime,
    ) -> DbResult<()>;

    /// Forgets the skipped files of the collections at `path` and below; all of them without a path. What is below a path of `spared`
    /// stays.
    fn remove_skipped(
        &self,
        collections: &CollectionSet,
        path: Option<&str>,
        spared: &[String],
    ) -> DbResult<()>;

    /// At most `count` sources of a collection, notes and files without text among them.
    fn paths_in(&self, collection: &CollectionName, count: usize) -> DbResult<Vec<String>>;

    /// All folders, by path and collection.
    fn folders(&self) -> DbResult<Vec<DocumentFolder>>;

    /// Adds a folder, or changes whether it is watched. It is due at once.
    fn save_folder(&self, folder: &NewFolder, now: SystemTime) -> DbResult<DocumentFolder>;

    /// Watches a folder or not. A watched one is due at once. `None` if there is no such folder.
    fn set_watched(&self, id: i64, watched: bool, now: SystemTime) -> DbResult<Option<DocumentFolder>>;

    /// Removes a folder, and returns it. Its documents stay.
    fn remove_folder(&self, id: i64) -> DbResult<Option<DocumentFolder>>;

    /// Takes a watched folder that is due. No other process can take it before `until`. Returns whether this one did.
    fn claim_folder(&self, id: i64, now: SystemTime, until: SystemTime) -> DbResult<bool>;

    /// Keeps a taken folder until then. Returns whether it still exists.
    fn hold_folder(&self, id: i64, until: SystemTime) -> DbResult<bool>;

    /// Saves how a run over a folder ended, and when it is due again. Returns whether the folder still exists.
    fn finish_folder(&self, id: i64, check: &FolderCheck) -> DbResult<bool>;
}

/// A part of a list that is ordered by path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CatalogPage {
    /// Only what has this text in its path or title; empty for everything.
    pub text: String,
    /// Only what is at this path or below; `None` for everything.
    pub below: Option<String>,
    /// What comes after the last entry of the page before.
    pub after: CatalogPosition,
    pub limit: usize,
}

/// The place of an entry in a list. Documents have no collection in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CatalogPosition {
    pub path: String,
    pub collection: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoredDocument {
    pub path: String,
    pub title: String,
    /// By name. Only those that the caller asked for.
    pub collections: Vec<String>,
    pub chunks: u64,
    /// Bytes of the file.
    pub size: u64,
    #[serde(rename = "indexed_at")]
    pub indexed: Moment,
}

/// A document that was changed lately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecentDocument {
    pub path: String,
    pub title: String,
    /// When its file was changed; for a note, when it was saved.
    pub changed: Moment,
    /// Its first passage.
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SkippedFile {
    pub path: String,
    pub collection: String,
    pub reason: String,
    #[serde(rename = "seen_at")]
    pub seen: Moment,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CollectionSummary {
    pub name: String,
    /// With text.
    pub documents: u64,
    pub chunks: u64,
    /// Bytes of the files.
    pub size: u64,
    pub skipped: u64,
    #[serde(rename = "indexed_at")]
    pub indexed: Option<Moment>,
}

/// A directory of the server's machine whose documents are in a collection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DocumentFolder {
    pub id: i64,
    pub path: String,
    pub collection: String,
    /// Whether servers index its changes.
    pub watched: bool,
    #[serde(rename = "added_at")]
    pub added: Moment,
    #[serde(rename = "checked_at")]
    pub checked: Option<Moment>,
    /// What went wrong in the last run.
    pub fault: Option<String>,
    #[serde(skip)]
    pub due: Moment,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFolder {
    /// Absolute, without links.
    pub path: String,
    pub collection: CollectionName,
    pub watched: bool,
}

/// How a run over a folder ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderCheck {
    pub at: SystemTime,
    pub fault: Option<String>,
    /// When it is due again.
    pub next: SystemTime,
}

/// The text of a filter in the form that is compared with columns. Both databases fold only ASCII here.
pub(super) fn folded(text: &str) -> String {
    text.trim().to_ascii_lowercase()
}

/// A number of rows as both databases count them.
pub(super) fn row_limit(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// What the paths below each of these begin with.
pub(super) fn stems(paths: &[String]) -> Vec<String> {
    paths.iter().map(|path| range_below(path).1).collect()
}

/// A path and the range below it; nothing without one.
pub(super) fn below(path: Option<&str>) -> (Option<&str>, String, String) {
    match path {
        Some(path) => {
            let (exact, first, end) = range_below(path);
            (Some(exact), first, end)
        }
        None => (None, String::new(), String::new()),
    }
}

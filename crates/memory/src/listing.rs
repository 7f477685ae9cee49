//! Complete lists of what the memory has, and of what it skipped.

use hob_core::CollectionSet;

use crate::service::{MemoryService, known_as};
use crate::store::{CatalogPage, CatalogPosition, SkippedFile, StoredDocument};
use crate::types::MemoryError;

/// Entries that are read at a time.
const PAGE: usize = 1_000;

impl MemoryService {
    /// The documents of the collections by path, at `below` or below it.
    pub async fn documents(
        &self,
        collections: CollectionSet,
        below: Option<&str>,
    ) -> Result<Vec<StoredDocument>, MemoryError> {
        let mut page = first_page(below)?;
        let listed = self.read(move |store| {
            let mut all: Vec<StoredDocument> = Vec::new();
            loop {
                let found = store.documents(&collections, &page)?;
                let is_last = found.len() < PAGE;
                all.extend(found);
                match all.last().filter(|_| !is_last) {
                    Some(last) => page.after.path.clone_from(&last.path),
                    None => return Ok(all),
                }
            }
        });
        Ok(listed.await?.unwrap_or_default())
    }

    /// The files that the last indexing of their place did not add, by path.
    pub async fn skipped_files(
        &self,
        collections: CollectionSet,
        below: Option<&str>,
    ) -> Result<Vec<SkippedFile>, MemoryError> {
        let mut page = first_page(below)?;
        let listed = self.read(move |store| {
            let mut all: Vec<SkippedFile> = Vec::new();
            loop {
                let found = store.skipped(&collections, &page)?;
                let is_last = found.len() < PAGE;
                all.extend(found);
                match all.last().filter(|_| !is_last) {
                    Some(SkippedFile { path, collection, .. }) => {
                        page.after = CatalogPosition { path: path.clone(), collection: collection.clone() };
                    }
                    None => return Ok(all),
                }
            }
        });
        Ok(listed.await?.unwrap_or_default())
    }
}

fn first_page(below: Option<&str>) -> Result<CatalogPage, MemoryError> {
    let below = below.map(known_as).transpose()?;
    Ok(CatalogPage { below, limit: PAGE, ..CatalogPage::default() })
}

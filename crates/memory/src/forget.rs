//! Forgetting what the memory has: paths, notes and collections. Files themselves stay.

use std::path::Path;

use hob_core::{CollectionName, CollectionSet};

use crate::service::{MemoryService, known_as};
use crate::store::RemovedSources;
use crate::types::MemoryError;

/// Sources per deletion.
const DELETE_BATCH: usize = 128;

impl MemoryService {
    /// Removes a file, a directory or a note from a collection, or from all.
    pub async fn forget(
        &self,
        path: &str,
        from: Option<CollectionName>,
    ) -> Result<RemovedSources, MemoryError> {
        self.forget_except(path, from, Vec::new()).await
    }

    /// Like [`Self::forget`]. What is below a path of `spared` stays.
    pub(crate) async fn forget_except(
        &self,
        path: &str,
        from: Option<CollectionName>,
        spared: Vec<String>,
    ) -> Result<RemovedSources, MemoryError> {
        let path = known_as(path)?;
        let forgotten = self.read(move |store| {
            let mut forgotten = RemovedSources::default();
            let collections = from.clone().map_or(CollectionSet::All, CollectionSet::of);
            store.remove_skipped(&collections, Some(&path), &spared)?;
            let mut paths = store.paths_below(&path, &collections, usize::MAX)?;
            paths.retain(|path| !spared.iter().any(|place| Path::new(path).starts_with(place)));
            for paths in paths.chunks(DELETE_BATCH) {
                forgotten += match &from {
                    Some(collection) => store.remove_from_collection(collection, paths)?,
                    None => store.remove(paths)?,
                };
            }
            store.sync()?;
            Ok(forgotten)
        });
        forgotten.await?.ok_or(MemoryError::Empty)
    }

    /// Removes everything from a collection, notes too.
    pub async fn forget_collection(&self, name: CollectionName) -> Result<RemovedSources, MemoryError> {
        let forgotten = self.read(move |store| {
            let mut forgotten = RemovedSources::default();
            store.remove_folders(&name)?;
            store.remove_skipped(&CollectionSet::of(name.clone()), None, &[])?;
            loop {
                let paths = store.paths_in(&name, DELETE_BATCH)?;
                if paths.is_empty() {
                    store.sync()?;
                    return Ok(forgotten);
                }
                forgotten += store.remove_from_collection(&name, &paths)?;
            }
        });
        Ok(forgotten.await?.unwrap_or_default())
    }
}

//! Forgetting what the memory has: paths, notes and collections. Files themselves stay.

use std::path::Path;

use hob_core::{CollectionName, CollectionSet};

use crate::service::MemoryService;
use crate::store::RemovedSources;
use crate::types::MemoryError;

/// Sources per deletion.
const DELETE_BATCH: usize = 128;

impl MemoryService {
    /// Removes a file, a note or everything below a directory from the collections, but not what is below a path of `spared`. The paths
    /// are the indexed ones.
    pub(crate) async fn forget(
        &self,
        path: String,
        from: CollectionSet,
        spared: Vec<String>,
    ) -> Result<RemovedSources, MemoryError> {
        let forgotten = self.read(move |store| {
            let mut forgotten = RemovedSources::default();
            store.remove_skipped(&from, Some(&path), &spared)?;
            let mut paths = store.paths_below(&path, &from, usize::MAX)?;
            paths.retain(|path| !spared.iter().any(|place| Path::new(path).starts_with(place)));
            for paths in paths.chunks(DELETE_BATCH) {
                match from.names() {
                    None => forgotten += store.remove(paths)?,
                    Some(names) => {
                        for name in names {
                            forgotten += store.remove_from_collection(name, paths)?;
                        }
                    }
                }
            }
            store.sync()?;
            Ok(forgotten)
        });
        Ok(forgotten.await?.unwrap_or_default())
    }

    /// Removes everything from a collection, notes too.
    pub async fn forget_collection(&self, name: CollectionName) -> Result<RemovedSources, MemoryError> {
        let forgotten = self.read(move |store| {
            let mut forgotten = RemovedSources::default();
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

//! Forgetting documents. What a watched folder or a job over a folder above would add again is refused. The jobs of what is removed are
//! stopped first, and Hob's copies of uploaded files are deleted last. Other files stay.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use hob_core::{CollectionName, CollectionSet};

use super::error::DocumentLibraryError;
use super::folders::collection_of;
use super::job::IndexJob;
use super::upload;
use super::{DocumentLibrary, ForgetReport, ends_of, has};
use crate::open::blocking;
use crate::service::known_as;
use crate::store::{CatalogPage, DocumentFolder, RemovedSources};

impl DocumentLibrary {
    /// Removes a document, or everything below a directory, from the collections, and stops the jobs at the path and below it. What was
    /// uploaded to the collections and is in no other one is deleted.
    pub async fn forget(
        &self,
        path: &str,
        from: CollectionSet,
    ) -> Result<ForgetReport, DocumentLibraryError> {
        let (library, path) = (self.clone(), path.to_owned());
        self.to_its_end(async move { library.forget_now(path, from).await }).await
    }

    async fn forget_now(
        &self,
        path: String,
        from: CollectionSet,
    ) -> Result<ForgetReport, DocumentLibraryError> {
        // One form of the path for all that follows.
        let path = blocking(move || known_as(&path)).await??;
        let _alone = match self.has_uploads(&path).await? {
            true => Some(self.inner.uploading.write().await),
            false => None,
        };
        self.refuse_what_returns(&path, &from).await?;
        let (place, meant) = (PathBuf::from(&path), from.clone());
        let is_inside = move |folder: &DocumentFolder| {
            !folder.watched && has(&meant, &folder.collection) && Path::new(&folder.path).starts_with(&place)
        };
        let is_meant = |job: &IndexJob| job.path.starts_with(&path) && has(&from, job.collection.as_str());
        let folders = self.stop_and_remove(is_meant, is_inside).await?;
        let mut changed = self.collections_below(path.clone(), from.clone()).await?;
        changed.extend(folders.iter().map(collection_of));
        let copies = self.copies_of(Some(path.clone().into()), from.clone()).await?;
        let removed = self.inner.memory.forget(path, from, Vec::new()).await?;
        let files = self.delete_unused(copies).await?;
        changed.iter().for_each(|name| self.inner.announce(name));
        Ok(ForgetReport { folders: folders.len() as u64, files, ..removed.into() })
    }

    /// Removes a collection: its jobs, its documents, its folders, and its uploaded files that are in no other one.
    pub async fn forget_collection(
        &self,
        name: CollectionName,
    ) -> Result<ForgetReport, DocumentLibraryError> {
        let library = self.clone();
        self.to_its_end(async move {
            let (inner, meant) = (&library.inner, name.clone());
            let _alone = inner.uploading.write().await;
            let is_its = move |folder: &DocumentFolder| folder.collection == meant.as_str();
            let folders = library.stop_and_remove(|job| job.collection == name, is_its).await?;
            let copies = library.copies_of(None, CollectionSet::of(name.clone())).await?;
            let removed = inner.memory.forget_collection(name.clone()).await?;
            let files = library.delete_unused(copies).await?;
            inner.announce(&name);
            Ok(ForgetReport { folders: folders.len() as u64, files, ..removed.into() })
        })
        .await
    }

    /// Stops jobs and removes folders, and returns the folders. Jobs of other processes notice that their folder is gone.
    async fn stop_and_remove(
        &self,
        is_job: impl Fn(&IndexJob) -> bool + Sync,
        is_folder: impl Fn(&DocumentFolder) -> bool + Send + 'static,
    ) -> Result<Vec<DocumentFolder>, DocumentLibraryError> {
        let stop = async || {
            let stopped = self.inner.jobs.lock().cancel(&is_job);
            ends_of(stopped).await;
        };
        // A job that ends without its folder forgets the documents itself, and then they are in no report.
        stop().await;
        let folders = self.remove_folders(is_folder).await?;
        // A look at a watched folder may have begun meanwhile.
        stop().await;
        Ok(folders)
    }

    /// Whether uploaded files can be at a path or below it, now or soon.
    async fn has_uploads(&self, path: &str) -> Result<bool, DocumentLibraryError> {
        let (uploads, path) = (self.inner.options.uploads.clone(), PathBuf::from(path));
        Ok(blocking(move || !uploads.exists() || upload::part_of(&uploads, Some(&path)).is_some()).await?)
    }

    /// The copies of uploaded files that collections have at a path and below it, or everywhere; `None` if there are none.
    async fn copies_of(
        &self,
        path: Option<PathBuf>,
        collections: CollectionSet,
    ) -> Result<Option<UploadedCopies>, DocumentLibraryError> {
        let uploads = self.inner.options.uploads.clone();
        let part = blocking(move || upload::part_of(&uploads, path.as_deref())).await?;
        let Some((uploads, part)) = part else { return Ok(None) };
        let documents = self.documents_below(&part, collections.clone()).await?;
        Ok(Some(UploadedCopies { uploads, part, collections, documents }))
    }

    /// Deletes copies, except those that a collection still has. Returns their number.
    async fn delete_unused(&self, copies: Option<UploadedCopies>) -> Result<u64, DocumentLibraryError> {
        let Some(UploadedCopies { uploads, part, collections, documents }) = copies else { return Ok(0) };
        let used = self.documents_below(&part, CollectionSet::All).await?;
        let delete = move || {
            upload::delete(&uploads, &part, |uploaded_to, path| {
                let is_theirs = has(&collections, uploaded_to.as_str()) || documents.contains(path);
                is_theirs && !used.contains(path)
            })
        };
        blocking(delete).await?
    }

    /// Those of the collections that have documents or skipped files at a path or below it.
    async fn collections_below(
        &self,
        path: String,
        collections: CollectionSet,
    ) -> Result<BTreeSet<CollectionName>, DocumentLibraryError> {
        let found = self.inner.memory.read(move |store| {
            let mut found = BTreeSet::new();
            let page = CatalogPage { below: Some(path.clone()), limit: 1, ..CatalogPage::default() };
            let names = match collections.names() {
                Some(names) => names.to_vec(),
                None => {
                    let all = store.collections(&collections)?;
                    all.iter().filter_map(|one| CollectionName::parse(&one.name).ok()).collect()
                }
            };
            for name in names {
                let only = CollectionSet::of(name.clone());
                if !store.paths_below(&path, &only, 1)?.is_empty() || !store.skipped(&only, &page)?.is_empty()
                {
                    found.insert(name);
                }
            }
            Ok(found)
        });
        Ok(found.await?.unwrap_or_default())
    }

    /// The paths of the documents of collections in a directory.
    async fn documents_below(
        &self,
        directory: &Path,
        collections: CollectionSet,
    ) -> Result<HashSet<String>, DocumentLibraryError> {
        let below = directory.to_string_lossy().into_owned();
        let found = self.inner.memory.read(move |store| store.paths_below(&below, &collections, usize::MAX));
        Ok(found.await?.unwrap_or_default().into_iter().collect())
    }
}

/// Copies of uploaded files. Those that a collection has are the ones that were uploaded to it, and its documents.
struct UploadedCopies {
    /// Where all of them are, and the part that is meant.
    uploads: PathBuf,
    part: PathBuf,
    collections: CollectionSet,
    documents: HashSet<String>,
}

impl From<RemovedSources> for ForgetReport {
    fn from(RemovedSources { sources, chunks }: RemovedSources) -> Self {
        ForgetReport { sources, chunks, ..ForgetReport::default() }
    }
}

#[cfg(test)]
#[path = "forget_tests.rs"]
mod tests;

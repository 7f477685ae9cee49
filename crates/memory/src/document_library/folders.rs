//! The folders of the library: adding, watching and removing them. Servers that share a database index a folder one at a time.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hob_core::{CollectionName, CollectionSet};

use super::error::DocumentLibraryError;
use super::job::{IndexJob, JobKind};
use super::upload::{self, PendingUpload, UploadPayer};
use super::{
    DocumentLibrary, FolderRequest, Inner, JobEnd, JobFuture, JobScope, JobTarget, PayerScope, ends_of, has,
};
use crate::index::{IndexOptions, resolve};
use crate::open::blocking;
use crate::store::{DocumentFolder, FolderCheck, MemoryStore, NewFolder};
use crate::types::MemoryError;

/// How long a server keeps a folder for itself without saying so again.
const LEASE: Duration = Duration::from_secs(120);

/// The number of renewals before a lease expires.
const RENEWALS_PER_LEASE: u32 = 4;

/// A folder rests this many times as long as a run over it takes, up to the longest rest.
const REST_FACTOR: u32 = 20;
const MAX_REST: Duration = Duration::from_secs(3600);

/// A server that does not have a folder leaves it to others for this many intervals.
const GRACE_INTERVALS: u32 = 10;

/// Folders in all collections.
const MAX_FOLDERS: usize = 1_000;

impl DocumentLibrary {
    /// Adds a folder, and indexes it in the background. One that is known is indexed again.
    pub async fn add_folder(
        &self,
        request: FolderRequest,
        scope: JobScope,
    ) -> Result<(DocumentFolder, IndexJob), DocumentLibraryError> {
        let FolderRequest { path, collection, watched } = request;
        let options = self.inner.memory.index_options().clone();
        let path = blocking(move || checked(&path, &options)).await??;
        let new = NewFolder { path, collection: collection.clone(), watched };
        let job = self.add_job(JobKind::Folder, collection, PathBuf::from(&new.path))?;
        let library = self.clone();
        self.to_its_end(async move {
            let saved = library.inner.memory.write(move |store| save(store, &new)).await;
            let folder = match saved {
                Ok(Some(folder)) => folder,
                failed => {
                    library.inner.withdraw(&job);
                    return Err(match failed {
                        Err(error) => error.into(),
                        _ => DocumentLibraryError::Folder(format!(
                            "there are already {MAX_FOLDERS} folders; remove one"
                        )),
                    });
                }
            };
            library.spawn(job.clone(), JobTarget::Folder(folder.clone()), scope);
            Ok((folder, job))
        })
        .await
    }

    pub async fn folders(&self) -> Result<Vec<DocumentFolder>, DocumentLibraryError> {
        Ok(self.inner.memory.read(|store| store.folders()).await?.unwrap_or_default())
    }

    /// Watches a folder or not. Its documents stay.
    pub async fn set_watched(&self, id: i64, watched: bool) -> Result<DocumentFolder, DocumentLibraryError> {
        let set = self.inner.memory.read(move |store| store.set_watched(id, watched, SystemTime::now()));
        let folder = set.await?.flatten().ok_or(DocumentLibraryError::NoFolder)?;
        self.inner.woken.notify_one();
        self.inner.announce(&collection_of(&folder));
        Ok(folder)
    }

    /// Removes a folder, its jobs, and its documents from its collection, except those of other folders inside it. Files themselves stay.
    pub async fn remove_folder(&self, id: i64) -> Result<DocumentFolder, DocumentLibraryError> {
        let library = self.clone();
        self.to_its_end(async move {
            let inner = &library.inner;
            let removed = inner.memory.read(move |store| store.remove_folder(id)).await?;
            let folder = removed.flatten().ok_or(DocumentLibraryError::NoFolder)?;
            let collection = collection_of(&folder);
            let is_its = |job: &IndexJob| job.collection == collection && job.path == Path::new(&folder.path);
            let stopped = inner.jobs.lock().cancel(is_its);
            ends_of(stopped).await;
            inner.forget_documents_of(&folder).await?;
            inner.announce(&collection);
            Ok(folder)
        })
        .await
    }

    /// Keeps watched folders up to date until the library is closed, and indexes uploaded files that a server which ended early has not
    /// indexed. `scope_of` finds the scope of their payers.
    pub fn start(&self, scope_of: impl Fn(UploadPayer) -> PayerScope + Send + Sync + 'static) {
        let library = self.clone();
        self.inner.tracker.spawn(async move {
            let Inner { stop, woken, options, .. } = &*library.inner;
            library.continue_uploads(&scope_of).await;
            loop {
                if let Err(error) = library.check_folders().await {
                    tracing::debug!(%error, "cannot look at the watched folders");
                }
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = woken.notified() => {}
                    () = tokio::time::sleep(options.watch.poll) => {}
                }
            }
        });
    }

    async fn continue_uploads(&self, scope_of: &(impl Fn(UploadPayer) -> PayerScope + Sync)) {
        let uploads = self.inner.options.uploads.clone();
        let Ok(pending) = blocking(move || upload::pending(&uploads)).await else { return };
        for PendingUpload { collection, path, payer } in pending {
            let target = JobTarget::upload_of(payer.as_ref());
            let scope: Option<JobScope> = match payer {
                // It may wait for the keys, which are closed after the library.
                Some(payer) => match self.inner.stop.run_until_cancelled(scope_of(payer)).await {
                    Some(scope) => scope,
                    None => return,
                },
                None => Some(Box::new(|work| work)),
            };
            let added = {
                let _uploading = self.inner.uploading.read().await;
                self.add_job(JobKind::Upload, collection, path)
            };
            // If too many jobs wait, the next start continues.
            let Ok(job) = added else { return };
            let inner = Arc::clone(&self.inner);
            match scope {
                Some(scope) => {
                    let work: JobFuture = Box::pin(inner.run(job, target));
                    scope(work).await;
                }
                None => inner.refuse(job).await,
            }
        }
    }

    /// Indexes the watched folders that are due, one after the other.
    async fn check_folders(&self) -> Result<(), DocumentLibraryError> {
        for folder in self.folders().await? {
            if self.inner.stop.is_cancelled() {
                return Ok(());
            }
            if !folder.watched || !self.is_due_here(&folder).await? {
                continue;
            }
            let id = folder.id;
            let now = SystemTime::now();
            let claimed = self.inner.memory.read(move |store| store.claim_folder(id, now, now + LEASE));
            if claimed.await? != Some(true) {
                continue;
            }
            let job = self.inner.jobs.lock().add(
                JobKind::Watch,
                collection_of(&folder),
                PathBuf::from(&folder.path),
                SystemTime::now(),
            )?;
            Box::pin(Arc::clone(&self.inner).run(job, JobTarget::Folder(folder))).await;
        }
        Ok(())
    }

    /// Whether a folder is due, and this machine has it. One that no machine has had for long is due everywhere, so that its fault
    /// is found.
    async fn is_due_here(&self, folder: &DocumentFolder) -> Result<bool, DocumentLibraryError> {
        let now = SystemTime::now();
        let due = folder.due.time();
        if due > now {
            return Ok(false);
        }
        let grace = self.inner.options.watch.interval * GRACE_INTERVALS;
        let path = PathBuf::from(&folder.path);
        let is_here = blocking(move || path.exists()).await?;
        Ok(is_here || due + grace <= now)
    }

    /// Removes folders, whose documents stay, and returns them. Runs over them, also of other processes, then end and leave nothing.
    pub(super) async fn remove_folders(
        &self,
        is_meant: impl Fn(&DocumentFolder) -> bool + Send + 'static,
    ) -> Result<Vec<DocumentFolder>, MemoryError> {
        let removed = self.inner.memory.read(move |store| {
            let mut removed = Vec::new();
            for folder in store.folders()?.iter().filter(|folder| is_meant(folder)) {
                removed.extend(store.remove_folder(folder.id)?);
            }
            Ok(removed)
        });
        Ok(removed.await?.unwrap_or_default())
    }

    /// Refuses to forget what would be added again: something is at the path, and a watched folder is above the path or below it, or a job
    /// of this process over a folder above it has not ended.
    pub(super) async fn refuse_what_returns(
        &self,
        path: &str,
        collections: &CollectionSet,
    ) -> Result<(), DocumentLibraryError> {
        let path = Path::new(path);
        let would_add = |folder: &DocumentFolder| {
            let root = Path::new(&folder.path);
            let is_related = self.would_read(root, path) || root.starts_with(path);
            folder.watched && has(collections, &folder.collection) && is_related
        };
        // Jobs at the path and below it are stopped instead.
        let is_above =
            |job: &IndexJob| job.finished.is_none() && job.path != path && self.would_read(&job.path, path);
        let refusal = match self.folders().await?.into_iter().find(would_add) {
            Some(folder) => DocumentLibraryError::Watched { folder: folder.path.into() },
            None => match self.jobs(collections).into_iter().find(is_above) {
                Some(job) => DocumentLibraryError::Indexing { folder: job.path },
                None => return Ok(()),
            },
        };
        let place = path.to_owned();
        if blocking(move || has_files(&place)).await? { Err(refusal) } else { Ok(()) }
    }

    /// Whether indexing a directory reads what is at a path. Uploads are read by their own jobs only, unless the directory is one of
    /// theirs.
    fn would_read(&self, directory: &Path, path: &Path) -> bool {
        let uploads = self.inner.memory.index_options().uploads_outside(directory);
        path.starts_with(directory) && !uploads.is_some_and(|uploads| path.starts_with(uploads))
    }
}

/// Whether a path is a file, or a directory with entries. Blocks.
fn has_files(path: &Path) -> bool {
    match std::fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => path.exists(),
    }
}

impl Inner {
    /// Ends the job of an uploaded file whose payer is gone.
    async fn refuse(&self, job: IndexJob) {
        let path = job.path.clone();
        // It fails only while the process ends. The next start looks at the file again.
        let _ = blocking(move || upload::remove_pending(&path)).await;
        let reason = "the key that uploaded it is no longer valid. The owner can upload it again";
        self.jobs.lock().finish(job.id, Some(reason.to_owned()), SystemTime::now());
        self.announce(&job.collection);
    }

    /// Keeps a folder while it is indexed, and saves how that ended. Returns what went wrong.
    pub(super) async fn holding(
        &self,
        job: &IndexJob,
        folder: &DocumentFolder,
        mut work: Pin<Box<impl Future<Output = JobEnd>>>,
    ) -> Option<String> {
        let id = folder.id;
        let JobEnd { fault, took } = loop {
            tokio::select! {
                end = &mut work => break end,
                () = tokio::time::sleep(LEASE / RENEWALS_PER_LEASE) => {
                    let until = SystemTime::now() + LEASE;
                    match self.memory.read(move |store| store.hold_folder(id, until)).await {
                        Ok(Some(false)) => {
                            // Another server removed the folder.
                            self.jobs.lock().cancel(|one| one.id == job.id);
                        }
                        Ok(_) => {}
                        Err(error) => tracing::debug!(%error, "cannot renew the lease of a folder"),
                    }
                }
            }
        };
        let now = SystemTime::now();
        let check = FolderCheck {
            at: now,
            // After a stop, another server or the next start continues at once.
            next: if self.stop.is_cancelled() { now } else { now + self.rest_after(took) },
            fault: fault.clone(),
        };
        match self.memory.read(move |store| store.finish_folder(id, &check)).await {
            Ok(Some(false)) => {
                // A server that removes a folder does not wait for the runs of others.
                if let Err(error) = self.forget_documents_of(folder).await {
                    tracing::warn!(
                        folder = folder.path,
                        %error,
                        "documents of a removed folder are still in the memory. 'hob memory forget PATH' removes \
                         them"
                    );
                }
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(
                folder = folder.path,
                %error,
                "the state of a watched folder is not saved; Hob indexes it again. 'hob doctor' checks the \
                 database"
            ),
        }
        fault
    }

    /// Forgets the documents of a removed folder, except uploads and those of other folders inside it.
    async fn forget_documents_of(&self, removed: &DocumentFolder) -> Result<(), MemoryError> {
        let root = Path::new(&removed.path);
        // The folder itself is among them if it was added again.
        let is_inside = |folder: &DocumentFolder| {
            folder.collection == removed.collection && Path::new(&folder.path).starts_with(root)
        };
        let folders = self.memory.read(|store| store.folders()).await?.unwrap_or_default();
        let mut spared: Vec<String> =
            folders.into_iter().filter(is_inside).map(|folder| folder.path).collect();
        let uploads = self.memory.index_options().uploads_outside(root).and_then(Path::to_str);
        spared.extend(uploads.map(str::to_owned));
        let from = CollectionSet::of(collection_of(removed));
        self.memory.forget(removed.path.clone(), from, spared).await.map(drop)
    }

    /// The rest after a run of this length, so that a large folder does not keep the disk busy.
    pub(super) fn rest_after(&self, run: Duration) -> Duration {
        self.options.watch.interval.max(run.saturating_mul(REST_FACTOR).min(MAX_REST))
    }
}

pub(super) fn collection_of(folder: &DocumentFolder) -> CollectionName {
    // It was a name when it was saved.
    CollectionName::parse(&folder.collection).unwrap_or_default()
}

/// Saves a folder, and keeps it for the caller. `None` if there are too many.
fn save(store: &dyn MemoryStore, new: &NewFolder) -> Result<Option<DocumentFolder>, hob_db::DatabaseError> {
    let folders = store.folders()?;
    let is_known =
        folders.iter().any(|folder| folder.path == new.path && folder.collection == new.collection.as_str());
    if folders.len() >= MAX_FOLDERS && !is_known {
        return Ok(None);
    }
    let now = SystemTime::now();
    let folder = store.save_folder(new, now)?;
    store.hold_folder(folder.id, now + LEASE)?;
    Ok(Some(folder))
}

/// The stored form of a directory that may be indexed. Blocks.
fn checked(path: &str, options: &IndexOptions) -> Result<String, DocumentLibraryError> {
    let refused = |reason: &str| DocumentLibraryError::Folder(format!("{path}: {reason}"));
    let written = match (path.strip_prefix("~/"), std::env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    };
    if !written.is_absolute() {
        return Err(refused("write the whole path of a folder, such as /home/ana/notes"));
    }
    let resolved = resolve(&written).map_err(|error| DocumentLibraryError::Folder(error.to_string()))?;
    if !resolved.is_dir() {
        return Err(refused("this is not a folder; upload single files"));
    }
    if options.is_private(&resolved) || options.limits.is_secret(&resolved) {
        return Err(refused("Hob never indexes its own files, keys or passwords"));
    }
    resolved.into_os_string().into_string().map_err(|_| refused("its name is not UTF-8"))
}

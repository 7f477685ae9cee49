//! Adds documents in the background, and forgets them: uploaded files, and folders of this machine, which are watched if the owner
//! wants it.
//!
//! Jobs run one after the other. Knows nothing of HTTP or keys: the caller decides who may do what.

mod error;
mod folders;
mod forget;
mod job;
mod restored;
mod upload;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use hob_core::{CollectionName, CollectionSet};
use parking_lot::Mutex;
use tokio::sync::{Notify, RwLock, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::index::{IndexProgress, count};
use crate::open::blocking;
use crate::service::{IndexRequest, MemoryService, MissingVectors, ProgressListener};
use crate::store::DocumentFolder;
use crate::types::MemoryError;
use job::{JobList, TooManyJobs};
use upload::{SameName, StoredUpload};

pub use error::DocumentLibraryError;
pub use job::{IndexJob, JobKind, JobState};
pub use restored::move_unknown_uploads;
pub use upload::UploadPayer;

/// How often a change of progress is announced.
const NEWS_INTERVAL: Duration = Duration::from_secs(1);

pub struct DocumentLibraryOptions {
    /// Where uploaded files are stored, a directory for each collection.
    pub uploads: PathBuf,
    pub watch: WatchOptions,
}

/// What a job indexes.
enum JobTarget {
    /// A file, and the vectors that its payer pays for.
    Upload(MissingVectors),
    Folder(DocumentFolder),
}

impl JobTarget {
    /// A key pays for its own document only. The owner's upload also gives vectors to what earlier runs left without.
    fn upload_of(payer: Option<&UploadPayer>) -> Self {
        JobTarget::Upload(match payer {
            Some(_) => MissingVectors::OfFile,
            None => MissingVectors::OfCollection,
        })
    }
}

/// How the run of a job ended.
struct JobEnd {
    /// What went wrong.
    fault: Option<String>,
    /// Without the wait for its turn.
    took: Duration,
}

/// How watched folders are kept up to date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchOptions {
    /// How often the list of folders is read.
    pub poll: Duration,
    /// The time between two runs over a folder. A folder that takes long is indexed less often.
    pub interval: Duration,
}

impl Default for WatchOptions {
    fn default() -> Self {
        WatchOptions { poll: Duration::from_secs(5), interval: Duration::from_secs(30) }
    }
}

/// An uploaded file.
pub struct DocumentUpload<B> {
    pub collection: CollectionName,
    /// As the caller wrote it.
    pub name: String,
    pub bytes: B,
    /// Whether it may replace a file of the same name.
    pub may_replace: bool,
    /// Who pays if a later process continues, as the scope does in this one. `None` for the owner.
    pub payer: Option<UploadPayer>,
}

/// A directory of this machine to index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderRequest {
    /// Absolute, or below `~`.
    pub path: String,
    pub collection: CollectionName,
    pub watched: bool,
}

/// What was forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ForgetReport {
    pub sources: u64,
    pub chunks: u64,
    /// Folders of the library that were removed.
    pub folders: u64,
    /// Copies of uploaded files that were deleted.
    pub files: u64,
}

/// The work of a job.
pub type JobFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Wraps the work of a job, so that the caller can say who pays for its vectors.
pub type JobScope = Box<dyn FnOnce(JobFuture) -> JobFuture + Send>;

/// Finds the scope of a payer; `None` if its key is not valid any more.
pub type PayerScope = Pin<Box<dyn Future<Output = Option<JobScope>> + Send>>;

/// Called after something changed in a collection.
type ChangeListener = Box<dyn Fn(&CollectionName) + Send + Sync>;

impl From<TooManyJobs> for DocumentLibraryError {
    fn from(_: TooManyJobs) -> Self {
        DocumentLibraryError::Busy
    }
}

/// Adds documents in the background. Cheap to clone; all clones share their state.
#[derive(Clone)]
pub struct DocumentLibrary {
    inner: Arc<Inner>,
}

struct Inner {
    memory: Arc<MemoryService>,
    options: DocumentLibraryOptions,
    jobs: Mutex<JobList>,
    /// One job runs at a time: indexing uses all that a disk and a database give.
    turn: Semaphore,
    /// Shared while an uploaded file gets its place and its job, and exclusive while documents are forgotten: a file of a later upload is
    /// not deleted with them.
    uploading: RwLock<()>,
    /// Notified when a folder may be due.
    woken: Notify,
    stop: CancellationToken,
    tracker: TaskTracker,
    listener: OnceLock<ChangeListener>,
}

impl DocumentLibrary {
    /// Creates nothing, and watches nothing until it is started.
    pub fn new(memory: Arc<MemoryService>, options: DocumentLibraryOptions) -> Self {
        let stop = CancellationToken::new();
        DocumentLibrary {
            inner: Arc::new(Inner {
                memory,
                options,
                jobs: Mutex::new(JobList::stopped_by(stop.clone())),
                turn: Semaphore::new(1),
                uploading: RwLock::new(()),
                woken: Notify::new(),
                stop,
                tracker: TaskTracker::new(),
                listener: OnceLock::new(),
            }),
        }
    }

    pub fn memory(&self) -> &Arc<MemoryService> {
        &self.inner.memory
    }

    /// Where uploaded files are stored.
    pub fn uploads(&self) -> &Path {
        &self.inner.options.uploads
    }

    /// Calls `listener` after every change of a collection or of a job. The first listener stays.
    pub fn on_change(&self, listener: impl Fn(&CollectionName) + Send + Sync + 'static) {
        // A second server in one process has its own library.
        let _ = self.inner.listener.set(Box::new(listener));
    }

    /// Stores an uploaded file, and indexes it in the background.
    pub async fn upload<B: AsRef<[u8]> + Send + 'static>(
        &self,
        upload: DocumentUpload<B>,
        scope: JobScope,
    ) -> Result<IndexJob, DocumentLibraryError> {
        let DocumentUpload { collection, name, bytes, may_replace, payer } = upload;
        let name = upload::safe_name(&name)?;
        let (length, limit) =
            (bytes.as_ref().len() as u64, self.inner.memory.index_options().limits.file_bytes);
        if length > limit {
            return Err(DocumentLibraryError::TooLarge { bytes: length, limit });
        }
        let same_name = if may_replace { SameName::Replace } else { SameName::Refuse };
        let uploads = self.inner.options.uploads.clone();
        let path = upload::directory_of(&uploads, &collection).join(&name);
        let target = JobTarget::upload_of(payer.as_ref());
        let library = self.clone();
        self.to_its_end(async move {
            let _uploading = library.inner.uploading.read().await;
            // Before the file is stored: one without a job would be in no list.
            let job = library.add_job(JobKind::Upload, collection, path)?;
            let into = job.collection.clone();
            let write = move || {
                let (bytes, payer) = (bytes.as_ref(), payer.as_ref());
                upload::store(
                    &uploads,
                    StoredUpload { collection: &into, name: &name, bytes, same_name, payer },
                )
            };
            let stored = match blocking(write).await {
                Ok(stored) => stored,
                Err(error) => Err(error.into()),
            };
            if let Err(error) = stored {
                library.inner.withdraw(&job);
                return Err(error);
            }
            library.spawn(job.clone(), target, scope);
            Ok(job)
        })
        .await
    }

    /// The jobs of the collections, newest first.
    pub fn jobs(&self, collections: &CollectionSet) -> Vec<IndexJob> {
        self.inner.jobs.lock().of(collections)
    }

    /// Stops the jobs, and waits for their ends. What was indexed stays.
    pub async fn close(&self) {
        self.inner.stop.cancel();
        self.inner.tracker.close();
        self.inner.tracker.wait().await;
    }

    fn add_job(
        &self,
        kind: JobKind,
        collection: CollectionName,
        path: PathBuf,
    ) -> Result<IndexJob, TooManyJobs> {
        let job = self.inner.jobs.lock().add(kind, collection, path, SystemTime::now())?;
        self.inner.announce(&job.collection);
        Ok(job)
    }

    /// Runs a change of several steps to its end, also if the caller leaves.
    async fn to_its_end<T: Send + 'static>(
        &self,
        change: impl Future<Output = Result<T, DocumentLibraryError>> + Send + 'static,
    ) -> Result<T, DocumentLibraryError> {
        match self.inner.tracker.spawn(change).await {
            Ok(done) => done,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime is shutting down.
                Err(_) => Err(MemoryError::Stopped.into()),
            },
        }
    }

    fn spawn(&self, job: IndexJob, target: JobTarget, scope: JobScope) {
        let inner = Arc::clone(&self.inner);
        let work: JobFuture = Box::pin(async move { inner.run(job, target).await });
        self.inner.tracker.spawn(scope(work));
    }
}

impl Inner {
    /// Runs a job to its end.
    async fn run(self: Arc<Self>, job: IndexJob, target: JobTarget) {
        let fault = "the run ended because of an error in Hob; the log of the server has it";
        let mut running = RunningJob { inner: &self, job: &job, fault: Some(fault.to_owned()) };
        let work = Box::pin(self.indexed(&job, &target));
        running.fault = match &target {
            JobTarget::Folder(folder) => self.holding(&job, folder, work).await,
            JobTarget::Upload(_) => work.await.fault,
        };
    }

    /// Removes the note of an uploaded file that is indexed. Forgets a file that is gone, because another process forgot it meanwhile.
    async fn end_upload(&self, job: &IndexJob, is_indexed: bool) {
        if is_indexed {
            let path = job.path.clone();
            // It fails only while the process ends. The next start looks at the file again.
            let _ = blocking(move || upload::remove_pending(&path)).await;
        }
        if !is_gone(&job.path).await {
            return;
        }
        self.jobs.lock().cancel(|one| one.id == job.id);
        let path = job.path.to_string_lossy().into_owned();
        let collections = CollectionSet::of(job.collection.clone());
        if let Err(error) = self.memory.forget(path, collections, Vec::new()).await {
            tracing::warn!(
                path = %job.path.display(),
                %error,
                "a deleted document is still in the memory. 'hob memory forget PATH' removes it"
            );
        }
    }

    /// Ends a job whose file or folder could not be saved. The caller gets the reason, so the job is not listed.
    fn withdraw(&self, job: &IndexJob) {
        {
            let mut jobs = self.jobs.lock();
            jobs.cancel(|one| one.id == job.id);
            jobs.finish(job.id, None, SystemTime::now());
        }
        self.announce(&job.collection);
    }

    /// Indexes when it is the turn of the job.
    async fn indexed(self: &Arc<Self>, job: &IndexJob, target: &JobTarget) -> JobEnd {
        let stop = self.jobs.lock().stop_of(job.id).child_token();
        let turn = tokio::select! {
            biased;
            () = stop.cancelled() => None,
            turn = self.turn.acquire() => turn.ok(),
        };
        let Some(_turn) = turn else {
            return JobEnd { fault: Some(MemoryError::Stopped.to_string()), took: Duration::ZERO };
        };
        let began = Instant::now();
        let fault = self.index_now(job, target, stop).await;
        if matches!(target, JobTarget::Upload(_)) {
            // Before the turn of a job that adds a new file of this name.
            self.end_upload(job, fault.is_none()).await;
        }
        JobEnd { fault, took: began.elapsed() }
    }

    /// Returns what went wrong.
    async fn index_now(
        self: &Arc<Self>,
        job: &IndexJob,
        target: &JobTarget,
        stop: CancellationToken,
    ) -> Option<String> {
        let vectors = match target {
            JobTarget::Upload(vectors) => *vectors,
            JobTarget::Folder(folder) => {
                // It may have been removed between the look for due folders and the start of this job.
                match self.memory.read(|store| store.folders()).await {
                    Ok(Some(folders)) if folders.iter().any(|one| one.id == folder.id) => {}
                    Ok(_) => {
                        self.jobs.lock().cancel(|one| one.id == job.id);
                        return Some(DocumentLibraryError::NoFolder.to_string());
                    }
                    Err(error) => return Some(error.to_string()),
                }
                MissingVectors::OfCollection
            }
        };
        self.jobs.lock().change(job.id, |job| job.state = JobState::Running);
        // The start of a look at a watched folder is no news.
        if job.kind != JobKind::Watch {
            self.announce(&job.collection);
        }
        let _dropped = stop.clone().drop_guard();
        let listener = self.progress_listener(job);
        if job.kind == JobKind::Folder {
            let (path, listener, stop) = (job.path.clone(), Arc::clone(&listener), stop.clone());
            self.tracker.spawn_blocking(move || count(&path, &*listener, &stop));
        }
        let request = IndexRequest { backend: None, collection: job.collection.clone(), listener, stop };
        let failed = match self.memory.index_for(&job.path, request, vectors).await {
            Ok(_) => return None,
            Err(MemoryError::Stopped) => return Some(MemoryError::Stopped.to_string()),
            Err(error) => error,
        };
        // There is nothing to correct if another process forgot the file.
        if !matches!(target, JobTarget::Upload(_)) || !is_gone(&job.path).await {
            tracing::warn!(
                path = %job.path.display(),
                error = %failed,
                "a path is not indexed. Correct the cause in the error, and index the path again"
            );
        }
        Some(failed.to_string())
    }

    /// Takes progress into a job, and announces it now and then.
    fn progress_listener(self: &Arc<Self>, job: &IndexJob) -> ProgressListener {
        let (inner, id, collection) = (Arc::clone(self), job.id, job.collection.clone());
        let announced = Mutex::new(Instant::now());
        Arc::new(move |progress: IndexProgress<'_>| {
            let mut has_found = false;
            inner.jobs.lock().change(id, |job| {
                job.advance(&progress);
                has_found = job.kind != JobKind::Watch || job.indexed > 0;
            });
            let mut announced = announced.lock();
            if has_found && announced.elapsed() >= NEWS_INTERVAL {
                *announced = Instant::now();
                inner.announce(&collection);
            }
        })
    }

    fn announce(&self, collection: &CollectionName) {
        if let Some(listener) = self.listener.get() {
            listener(collection);
        }
    }
}

/// Whether nothing is at a path.
async fn is_gone(path: &Path) -> bool {
    let path = path.to_owned();
    matches!(blocking(move || path.try_exists()).await, Ok(Ok(false)))
}

/// Ends its job when it is dropped, also by a panic, because others may wait for the end.
struct RunningJob<'a> {
    inner: &'a Inner,
    job: &'a IndexJob,
    fault: Option<String>,
}

impl Drop for RunningJob<'_> {
    fn drop(&mut self) {
        let is_news = self.inner.jobs.lock().finish(self.job.id, self.fault.take(), SystemTime::now());
        if is_news && !std::thread::panicking() {
            self.inner.announce(&self.job.collection);
        }
    }
}

/// Waits until cancelled jobs have ended, so that they add nothing afterwards.
async fn ends_of(jobs: Vec<CancellationToken>) {
    for ended in jobs {
        ended.cancelled().await;
    }
}

/// Whether a set has a collection of this name.
fn has(collections: &CollectionSet, name: &str) -> bool {
    collections.names().is_none_or(|names| names.iter().any(|one| one.as_str() == name))
}

#[cfg(test)]
#[path = "document_library_tests.rs"]
mod tests;

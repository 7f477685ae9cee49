//! Pulls a model into the directory of models.
//!
//! A model is written under another name (`.part`), checked, and renamed when it is complete. One pull of a model runs at a time,
//! across processes; the others wait. An interrupted pull leaves its part, and the next one continues there.

mod assemble;
mod choose;
mod client;
mod download;
mod error;
mod hub;
mod local;
mod options;
mod package;
mod pinned;
mod pip;
mod spec;
mod target;

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

pub use self::error::PullError;
pub use self::options::{DownloadPolicy, DownloadProgress, DownloadRetry, DownloadStep, PullOptions};
pub use self::pinned::is_within_reach;
pub use self::spec::{HubSpec, PullSpec, PullSpecError};
use crate::catalogue::{CatalogueEntry, ModelSource};
use crate::directory::{ModelDirectory, StoredModel};
use crate::lock::ModelLock;

/// The pause between two attempts to take the lock.
const LOCK_PAUSE: Duration = Duration::from_millis(200);

/// Pulls the model that `spec` names, unless it is in the directory, and returns it.
pub async fn pull(
    spec: &PullSpec,
    directory: &ModelDirectory,
    options: &PullOptions,
) -> Result<StoredModel, PullError> {
    // Work on other threads ends with this call, also if it is dropped.
    let stop = options.cancel.child_token();
    let _stop_at_end = stop.clone().drop_guard();
    let job = PullJob { directory: directory.clone(), options: options.clone(), stop, _lock: None };
    let work = async {
        job.blocking(|job| Ok(job.directory.prepare()?)).await?;
        match spec {
            PullSpec::Catalogue(entry) => pull_entry(&job, entry).await,
            PullSpec::Hub(wanted) => hub::pull(&job, wanted, None).await,
            PullSpec::File(path) => local::pull(&job, path).await,
        }
    };
    tokio::select! {
        biased;
        () = options.cancel.cancelled() => Err(PullError::Cancelled),
        done = work => done,
    }
}

async fn pull_entry(job: &PullJob, entry: &CatalogueEntry) -> Result<StoredModel, PullError> {
    match &entry.source {
        ModelSource::Pinned(pinned) => pinned::pull(job, entry.name, pinned).await,
        ModelSource::Hub { repo, wanted } => {
            // No request to the hub is needed if the model exists.
            if let Some(model) = job.healthy(entry.name).await? {
                return Ok(model);
            }
            let wanted = HubSpec { repo: (*repo).to_owned(), wanted: Some((*wanted).to_owned()) };
            hub::pull(job, &wanted, Some(entry.name)).await
        }
    }
}

#[derive(Clone)]
struct PullJob {
    directory: ModelDirectory,
    options: PullOptions,
    /// Cancelled when the pull ends for any reason.
    stop: CancellationToken,
    /// Shared with every thread of this pull, so that none writes after the next pull has begun.
    _lock: Option<Arc<ModelLock>>,
}

impl PullJob {
    fn report(&self, step: DownloadStep, done: u64, total: Option<u64>) {
        (self.options.progress)(DownloadProgress { step, done, total });
    }

    fn online(&self, what: impl FnOnce() -> String) -> Result<(), PullError> {
        match self.options.network {
            DownloadPolicy::Online => Ok(()),
            DownloadPolicy::Offline => Err(PullError::Offline { what: what() }),
        }
    }

    /// Waits for the lock of the model `id`.
    async fn locked(&self, id: &str) -> Result<PullJob, PullError> {
        loop {
            let (dir, name) = (self.directory.dir().to_owned(), id.to_owned());
            let taken = self
                .blocking(move |_| {
                    ModelLock::try_take(&dir, &name).map_err(|error| PullError::io(&dir, "locked", error))
                })
                .await?;
            if let Some(lock) = taken {
                return Ok(PullJob { _lock: Some(Arc::new(lock)), ..self.clone() });
            }
            self.report(DownloadStep::Waiting, 0, None);
            tokio::time::sleep(LOCK_PAUSE).await;
        }
    }

    /// The model `id` if it is in the directory and not broken.
    async fn healthy(&self, id: &str) -> Result<Option<StoredModel>, PullError> {
        let id = id.to_owned();
        let found = self.blocking(move |job| Ok(job.directory.find(&id)?)).await?;
        Ok(found.filter(|model| model.problem.is_none()))
    }

    /// The model `id`, which was just added.
    async fn arrived(&self, id: &str) -> Result<StoredModel, PullError> {
        self.healthy(id)
            .await?
            .ok_or_else(|| PullError::Vanished { id: id.to_owned(), dir: self.directory.dir().to_owned() })
    }

    /// Runs disk work on a blocking thread.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&PullJob) -> Result<T, PullError> + Send + 'static,
    ) -> Result<T, PullError> {
        let job = self.clone();
        match tokio::task::spawn_blocking(move || work(&job)).await {
            Ok(done) => done,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime ends.
                Err(_) => Err(PullError::Cancelled),
            },
        }
    }

    /// Called in loops over a file, to end them after the pull has ended.
    fn check_active(&self) -> std::io::Result<()> {
        if self.stop.is_cancelled() {
            return Err(std::io::Error::other("the pull has ended"));
        }
        Ok(())
    }
}

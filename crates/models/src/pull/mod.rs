//! Pulls a model into the directory of models.
//!
//! Whatever the source, a model is written under another name (`.part`), checked, and renamed when it is whole: a half
//! file is never listed. One pull of a model runs at a time, across processes; the others wait for it. A pull that is
//! cancelled, dropped or killed leaves what it has, and the next one resumes there.

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

/// How often the lock of another pull is tried.
const LOCK_PAUSE: Duration = Duration::from_millis(200);

/// Fetches the model that `spec` names and returns it as it is in the directory. A model that is there already is not fetched
/// again.
pub async fn pull(
    spec: &PullSpec,
    directory: &ModelDirectory,
    options: &PullOptions,
) -> Result<StoredModel, PullError> {
    // Work on other threads ends with this call, also when it is dropped in the middle.
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
            // Its name is ours, so that it is there needs no hub to say.
            if let Some(model) = job.healthy(entry.name).await? {
                return Ok(model);
            }
            let wanted = HubSpec { repo: (*repo).to_owned(), wanted: Some((*wanted).to_owned()) };
            hub::pull(job, &wanted, Some(entry.name)).await
        }
    }
}

/// What every source works with.
#[derive(Clone)]
struct PullJob {
    directory: ModelDirectory,
    options: PullOptions,
    /// Cancelled when the pull ends for any reason.
    stop: CancellationToken,
    /// With every thread that works for this pull, so that none writes after the next pull has begun.
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

    /// The same with the right to write the model `id`, once no other holder has it.
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

    /// The model `id` if it is in the directory and nothing is wrong with it.
    async fn healthy(&self, id: &str) -> Result<Option<StoredModel>, PullError> {
        let id = id.to_owned();
        let found = self.blocking(move |job| Ok(job.directory.find(&id)?)).await?;
        Ok(found.filter(|model| model.problem.is_none()))
    }

    /// The model `id`, which was just put there.
    async fn arrived(&self, id: &str) -> Result<StoredModel, PullError> {
        self.healthy(id)
            .await?
            .ok_or_else(|| PullError::Vanished { id: id.to_owned(), dir: self.directory.dir().to_owned() })
    }

    /// Runs what waits for the disk on a thread of its own.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&PullJob) -> Result<T, PullError> + Send + 'static,
    ) -> Result<T, PullError> {
        let job = self.clone();
        match tokio::task::spawn_blocking(move || work(&job)).await {
            Ok(done) => done,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime is going down.
                Err(_) => Err(PullError::Cancelled),
            },
        }
    }

    /// For loops over a file: ends them soon after the pull has ended.
    fn go_on(&self) -> std::io::Result<()> {
        if self.stop.is_cancelled() {
            return Err(std::io::Error::other("the pull has ended"));
        }
        Ok(())
    }
}

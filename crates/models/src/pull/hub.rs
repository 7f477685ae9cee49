//! Pulls models from a hub with the Hugging Face API: lists a repository, chooses, downloads.

use hob_net::response_body;
use reqwest::Response;
use reqwest::header::LINK;
use serde::Deserialize;
use url::Url;

use super::choose::{self, HubCandidate, HubFile, Undecided};
use super::client::HubClient;
use super::download::Download;
use super::error::PullError;
use super::job::PullJob;
use super::options::DownloadStep;
use super::spec::HubSpec;
use super::target::{Content, PullPlan};
use crate::checksum::Checksum;
use crate::directory::StoredModel;

/// The size of a page. A thousand files have some 300 KiB.
const MAX_PAGE_BYTES: usize = 8 << 20;

const MAX_PAGES: usize = 20;

/// The current revision.
const NEWEST: &str = "main";

#[derive(Deserialize)]
struct Listed {
    path: String,
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    size: u64,
    #[serde(default)]
    oid: String,
    lfs: Option<LargeFile>,
}

/// Large files are stored under their checksum.
#[derive(Deserialize)]
struct LargeFile {
    oid: String,
    size: u64,
}

/// How a model of a hub is stored.
#[derive(Default)]
pub(super) struct HubTarget {
    /// Overrides the id that its file name gives.
    pub(super) id: Option<&'static str>,
    /// The file of its projector, if it is known.
    pub(super) projector: Option<&'static str>,
}

/// Pulls what `spec` names, with its projector if the repository has one.
pub(super) async fn pull(
    job: &PullJob,
    spec: &HubSpec,
    stored_as: &HubTarget,
) -> Result<StoredModel, PullError> {
    job.online(|| format!("the repository '{}'", spec.repo))?;
    let client = HubClient::new(&job.options)?;
    job.report(DownloadStep::Listing, 0, None);
    let (model, projector) = find(&client, spec, stored_as.projector).await?;

    let id = stored_as.id.unwrap_or(&model.stem).to_owned();
    let plan = PullPlan::new(job, &id, model.files.iter().map(HubFile::content))?;
    let plan = match &projector {
        Some(projector) => plan.with_projector(job, &projector.content()),
        None => plan,
    };
    let files: Vec<&HubFile> = model.files.iter().chain(&projector).collect();
    let job = job.locked(&id).await?;
    let mut plan = job.blocking(move |job| plan.without_what_is_there(job)).await?;

    let total = plan.targets.iter().map(|target| target.size).sum();
    let mut before = 0;
    for target in &mut plan.targets {
        let file = files[target.number as usize - 1];
        let download = Download {
            client: &client,
            url: address(&client, &spec.repo, NEWEST, &file.path),
            repo: &spec.repo,
            before,
            total,
            retry: job.options.retry,
            has_other_source: false,
        };
        download.run(&job, target).await?;
        before += target.size;
    }
    job.blocking(move |_| plan.publish()).await?;
    job.arrived(&id).await
}

/// The model that `spec` names in its repository, and its projector.
async fn find(
    client: &HubClient,
    spec: &HubSpec,
    projector: Option<&str>,
) -> Result<(HubCandidate, Option<HubFile>), PullError> {
    let files = list(client, &spec.repo).await?;
    let repo = spec.repo.clone();
    let candidates = choose::candidates(files);
    let chosen = choose::choose(candidates.clone(), spec.wanted.as_deref());
    let model = chosen.map_err(|undecided| match undecided {
        Undecided::NoSuchFile(choices) => PullError::NoSuchFile {
            repo,
            wanted: spec.wanted.clone().unwrap_or_else(|| "a GGUF model".to_owned()),
            choices,
        },
        Undecided::Ambiguous(choices) => PullError::Ambiguous { repo, choices },
    })?;
    let projector = choose::projector(candidates, &model, projector);
    Ok((model, projector))
}

async fn list(client: &HubClient, repo: &str) -> Result<Vec<HubFile>, PullError> {
    let mut url = listing(client, repo);
    let mut files = Vec::new();
    for _ in 0..MAX_PAGES {
        let response = client.get(url, 0, repo).await?;
        let next = next_page(&response).filter(|next| client.is_own(next));
        let page = read_page(client, repo, response).await?;
        let page: Vec<Listed> =
            serde_json::from_slice(&page).map_err(|error| client.malformed(repo, error.to_string()))?;
        files.extend(page.into_iter().filter(|listed| listed.kind == "file").map(HubFile::from));
        match next {
            Some(next) => url = next,
            None => return Ok(files),
        }
    }
    Err(client.malformed(repo, format!("its list of files has more than {MAX_PAGES} pages")))
}

impl HubFile {
    fn content(&self) -> Content<'_> {
        Content { size: self.size, sha256: self.sha256, version: &self.version }
    }
}

impl From<Listed> for HubFile {
    fn from(listed: Listed) -> Self {
        let (size, version) = match listed.lfs {
            Some(large) => (large.size, large.oid),
            None => (listed.size, listed.oid),
        };
        HubFile {
            path: listed.path,
            size,
            // The other kind of version is a Git hash, which is shorter.
            sha256: Checksum::parse(version.strip_prefix("sha256:").unwrap_or(&version)),
            version,
        }
    }
}

pub(super) async fn read_page(
    client: &HubClient,
    repo: &str,
    response: Response,
) -> Result<Vec<u8>, PullError> {
    let page = response_body(response, MAX_PAGE_BYTES).await.map_err(|error| client.unreachable(&error))?;
    page.ok_or_else(|| client.malformed(repo, format!("it is larger than {} MiB", MAX_PAGE_BYTES >> 20)))
}

/// `Link: <https://…>; rel="next"`.
fn next_page(response: &Response) -> Option<Url> {
    let links = response.headers().get(LINK)?.to_str().ok()?;
    let next = links.split(',').find(|link| link.contains("rel=\"next\""))?;
    let address = next.split_once('<')?.1.split_once('>')?.0;
    response.url().join(address).ok()
}

/// The address of the list of files.
pub(super) fn listing(client: &HubClient, repo: &str) -> Url {
    let words = ["api", "models"].into_iter().chain(repo.split('/'));
    let mut url = client.url(words.chain(["tree", NEWEST]));
    url.set_query(Some("recursive=1"));
    url
}

/// The address of a file at a revision.
pub(super) fn address(client: &HubClient, repo: &str, revision: &str, path: &str) -> Url {
    let words = repo.split('/').chain(["resolve", revision]);
    client.url(words.chain(path.split('/')))
}

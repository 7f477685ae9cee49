//! Searches the hub for models.

use serde::Deserialize;
use url::Url;

use super::client::HubClient;
use super::error::PullError;
use super::hub::read_page;
use super::options::{DownloadPolicy, PullOptions};
use super::spec::PullSpec;

/// A repository that the hub found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundRepository {
    /// `owner/repo`.
    pub repo: String,
    /// In the last month.
    pub downloads: Option<u64>,
    /// Such as `apache-2.0`.
    pub license: Option<String>,
}

/// An element of the hub's answer, with the fields that are used.
#[derive(Deserialize)]
struct SearchResult {
    id: String,
    downloads: Option<u64>,
    #[serde(default)]
    tags: Vec<String>,
}

/// Repositories with GGUF files that match these words, the most downloaded first.
pub async fn search(
    words: &str,
    limit: usize,
    options: &PullOptions,
) -> Result<Vec<FoundRepository>, PullError> {
    if options.network == DownloadPolicy::Offline {
        return Err(PullError::Offline { what: "a search of the model hub".to_owned() });
    }
    let client = HubClient::new(options)?;
    let response =
        client.get(address(&client, words, limit), 0, words).await.map_err(|error| match error {
            PullError::NoSuchRepository { .. } | PullError::Gated { .. } => {
                client.malformed(words, "it has no search, or refuses HF_TOKEN")
            }
            other => other,
        })?;
    let page = read_page(&client, words, response).await?;
    let results: Vec<SearchResult> =
        serde_json::from_slice(&page).map_err(|error| client.malformed(words, error.to_string()))?;
    Ok(results.into_iter().filter_map(readable).take(limit).collect())
}

fn address(client: &HubClient, words: &str, limit: usize) -> Url {
    let mut url = client.url(["api", "models"]);
    url.query_pairs_mut()
        .append_pair("search", words)
        .append_pair("filter", "gguf")
        .append_pair("sort", "downloads")
        .append_pair("direction", "-1")
        .append_pair("limit", &limit.to_string());
    url
}

/// A result that can be pulled by its name; others are skipped.
fn readable(result: SearchResult) -> Option<FoundRepository> {
    format!("hf:{}", result.id).parse::<PullSpec>().ok()?;
    let license = result.tags.iter().find_map(|tag| tag.strip_prefix("license:")).map(str::to_owned);
    Some(FoundRepository { repo: result.id, downloads: result.downloads, license })
}

//! HTTP to a model hub: address, token and errors.

use std::time::{Duration, SystemTime};

use hob_net::{
    HttpClientOptions, ProxyUse, RedirectPolicy, USER_AGENT, http_client, retry_after, root_cause,
};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue, RANGE, RETRY_AFTER};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use secrecy::ExposeSecret;
use url::Url;

use super::error::PullError;
use super::options::PullOptions;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// The hub redirects once or twice to its store of large files.
const MAX_REDIRECTS: usize = 10;

/// The part of an error body that is read.
const MAX_ERROR_BYTES: usize = 16 << 10;

pub(super) struct HubClient {
    client: reqwest::Client,
    base: Url,
    token: Option<HeaderValue>,
}

impl HubClient {
    pub fn new(options: &PullOptions) -> Result<Self, PullError> {
        let address = options.hub.trim().trim_end_matches('/');
        let bad_hub = |reason: String| PullError::BadHub { address: address.to_owned(), reason };
        let base = Url::parse(address).map_err(|error| bad_hub(error.to_string()))?;
        if !matches!(base.scheme(), "http" | "https") || base.host().is_none() {
            return Err(bad_hub("it must begin with https:// or http://".to_owned()));
        }
        let token = match &options.token {
            Some(token) => {
                let value = format!("Bearer {}", token.expose_secret().trim());
                let mut value = HeaderValue::try_from(value).map_err(|_| PullError::BadToken)?;
                value.set_sensitive(true);
                Some(value)
            }
            None => None,
        };
        let options = HttpClientOptions {
            user_agent: Some(USER_AGENT),
            redirects: RedirectPolicy::KeepEncryption { most: MAX_REDIRECTS },
            proxy: ProxyUse::towards(&base),
            connect_timeout: CONNECT_TIMEOUT,
            read_timeout: Some(options.timeout),
            ..HttpClientOptions::default()
        };
        let client = http_client(options).map_err(|error| bad_hub(root_cause(&error)))?;
        Ok(HubClient { client, base, token })
    }

    /// The address, for messages.
    pub fn host(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// An address on the hub, with escaped segments.
    pub fn url<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(words);
        }
        url
    }

    /// Whether an address is on the hub itself.
    pub fn is_own(&self, url: &Url) -> bool {
        url.origin() == self.base.origin()
    }

    /// The answer to a GET from byte `from`. `repo` is for messages.
    pub async fn get(&self, url: Url, from: u64, repo: &str) -> Result<Response, PullError> {
        let mut request = self.request(Method::GET, url);
        if from > 0 {
            request = request.header(RANGE, format!("bytes={from}-"));
        }
        self.ask(request, repo).await
    }

    /// Whether `url` is available. Downloads nothing.
    pub async fn has(&self, url: Url, repo: &str) -> Result<(), PullError> {
        self.ask(self.request(Method::HEAD, url), repo).await.map(drop)
    }

    fn request(&self, method: Method, url: Url) -> RequestBuilder {
        let mut headers = HeaderMap::new();
        // reqwest removes it when a redirect leads to another host or port.
        if let Some(token) = self.token.as_ref().filter(|_| self.is_own(&url)) {
            headers.insert(AUTHORIZATION, token.clone());
        }
        self.client.request(method, url).headers(headers)
    }

    async fn ask(&self, request: RequestBuilder, repo: &str) -> Result<Response, PullError> {
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(self.refusal(response, repo).await)
    }

    pub fn unreachable(&self, error: &reqwest::Error) -> PullError {
        let reason = match error.is_timeout() {
            true => "it sent nothing for too long".to_owned(),
            false => root_cause(error),
        };
        PullError::Unreachable { host: self.host().to_owned(), reason }
    }

    pub fn malformed(&self, repo: &str, reason: impl Into<String>) -> PullError {
        PullError::Malformed { repo: repo.to_owned(), host: self.host().to_owned(), reason: reason.into() }
    }

    async fn refusal(&self, mut response: Response, repo: &str) -> PullError {
        let status = response.status();
        let header = |name: &str| response.headers().get(name)?.to_str().ok().map(str::to_owned);
        // This header is more precise than the status: the hub answers 401 for a missing repository.
        let code = header("x-error-code").unwrap_or_default();
        let explained = header("x-error-message");
        let retry_after =
            header(RETRY_AFTER.as_str()).and_then(|value| retry_after(&value, SystemTime::now()));
        let (repo, host) = (repo.to_owned(), self.host().to_owned());
        match (code.as_str(), status) {
            ("GatedRepo", _) | (_, StatusCode::FORBIDDEN) => PullError::Gated { repo, host },
            ("RepoNotFound", _) | ("", StatusCode::UNAUTHORIZED | StatusCode::NOT_FOUND) => {
                PullError::NoSuchRepository { repo, host }
            }
            _ => PullError::Refused {
                repo,
                host,
                status: status.as_u16(),
                message: match explained {
                    Some(explained) => explained,
                    None => complaint(&mut response).await,
                },
                retry_after,
            },
        }
    }
}

/// The text of an error body, if it is readable.
async fn complaint(response: &mut Response) -> String {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        if body.len() + chunk.len() > MAX_ERROR_BYTES {
            break;
        }
        body.extend_from_slice(&chunk);
    }
    let json: Option<serde_json::Value> = serde_json::from_slice(&body).ok();
    let error = json.as_ref().and_then(|json| json.get("error")?.as_str());
    let text = String::from_utf8_lossy(&body);
    let text = error.unwrap_or(&text).trim();
    match text.starts_with(['<', '{']) {
        true => String::new(),
        false => text.chars().take(300).collect(),
    }
}

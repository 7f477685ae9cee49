//! Fetches a page of the public web: checks every redirect, and reads a limited amount.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hob_net::egress::{AddressLookup, AddressPolicy, CheckedResolver, ForbiddenAddress, system_lookup};
use hob_net::{DEFAULT_CONNECT_TIMEOUT, HttpClientOptions, ProxyUse, USER_AGENT, http_client, root_cause};
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, LOCATION};
use reqwest::{Client, Response, StatusCode};
use thiserror::Error;
use url::{Host, ParseError, Url};

const MAX_REDIRECTS: usize = 5;

const MAX_URL_BYTES: usize = 4_096;

const ACCEPTED: &str =
    "text/html, application/xhtml+xml, text/plain, application/json;q=0.9, text/*;q=0.8, */*;q=0.1";

/// How pages are fetched.
#[derive(Clone)]
pub struct WebFetchOptions {
    pub policy: AddressPolicy,
    pub lookup: AddressLookup,
    /// The time limit, including redirects.
    pub timeout: Duration,
    /// The part of a page that is read.
    pub max_bytes: usize,
    /// The `Accept` header.
    pub accept: &'static str,
}

impl Default for WebFetchOptions {
    fn default() -> Self {
        WebFetchOptions {
            policy: AddressPolicy::public_only(),
            lookup: system_lookup(),
            timeout: Duration::from_secs(20),
            max_bytes: 2 << 20,
            accept: ACCEPTED,
        }
    }
}

/// Why a page could not be fetched.
#[derive(Debug, Error)]
pub enum FetchError {
    #[error("'{url}' is not an address: {reason}")]
    BadUrl { url: String, reason: String },
    #[error("only http and https can be fetched, not '{0}'")]
    Scheme(String),
    #[error("addresses with a user name or password are not fetched")]
    Credentials,
    #[error("'{0}' is not a public address; only those can be fetched")]
    NotPublic(String),
    #[error("{0}; only public addresses can be fetched")]
    ForbiddenName(ForbiddenAddress),
    #[error("the page redirects more than {MAX_REDIRECTS} times")]
    TooManyRedirects,
    #[error(
        "the page redirects to {0}; after untrusted text was read, only redirects within a site are followed"
    )]
    LeavesSite(String),
    #[error("the page redirects without an address")]
    RedirectWithoutTarget,
    #[error("the server answered {0}")]
    Status(StatusCode),
    #[error("the page is compressed ({0}), which was not requested")]
    Compressed(String),
    #[error("no answer within {} s", .0.as_secs())]
    Timeout(Duration),
    #[error("cannot fetch from {host}: {reason}")]
    Transport { host: String, reason: String },
    #[error("cannot create the HTTP client: {0}")]
    Client(String),
}

/// The redirects that are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redirects {
    Anywhere,
    /// To the same host, or between a host and its subdomain such as `www.`: the recipient was decided before.
    SameSite,
}

#[derive(Debug, PartialEq, Eq)]
pub struct FetchedPage {
    /// The address after all redirects.
    pub url: Url,
    /// As sent by the server.
    pub content_type: Option<String>,
    pub body: Vec<u8>,
    /// Whether the page is longer.
    pub is_cut: bool,
}

pub struct Fetcher {
    /// Created for the first page, because reading the system's certificates takes time and memory.
    client: OnceLock<Client>,
    options: WebFetchOptions,
}

impl Fetcher {
    pub fn new(options: WebFetchOptions) -> Self {
        Fetcher { client: OnceLock::new(), options }
    }

    fn client(&self) -> Result<&Client, FetchError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let Fetcher { options, .. } = self;
        let resolver =
            CheckedResolver { policy: options.policy.clone(), lookup: Arc::clone(&options.lookup) };
        // Redirects are followed here, so that every step is checked.
        let client = http_client(HttpClientOptions {
            user_agent: Some(USER_AGENT),
            resolver: Some(Arc::new(resolver)),
            // A proxy would resolve names itself, without these checks.
            proxy: ProxyUse::Never,
            connect_timeout: DEFAULT_CONNECT_TIMEOUT.min(options.timeout),
            // A reused connection would skip the check of its address.
            max_idle_per_host: 0,
            ..HttpClientOptions::default()
        })
        .map_err(|error| FetchError::Client(root_cause(&error)))?;
        // Concurrent callers may create two; one is kept.
        Ok(self.client.get_or_init(|| client))
    }

    pub async fn fetch(&self, address: &str, redirects: Redirects) -> Result<FetchedPage, FetchError> {
        let work = tokio::time::timeout(self.options.timeout, self.follow(address, redirects));
        work.await.unwrap_or(Err(FetchError::Timeout(self.options.timeout)))
    }

    async fn follow(&self, address: &str, redirects: Redirects) -> Result<FetchedPage, FetchError> {
        let mut url = parse(address, None)?;
        for _ in 0..=MAX_REDIRECTS {
            self.check(&url)?;
            let response = self.get(&url).await?;
            if !response.status().is_redirection() {
                return self.read(url, response).await;
            }
            let target = response.headers().get(LOCATION).and_then(|target| target.to_str().ok());
            let next = parse(target.ok_or(FetchError::RedirectWithoutTarget)?, Some(&url))?;
            if redirects == Redirects::SameSite && !is_same_site(&url, &next) {
                return Err(FetchError::LeavesSite(next.host_str().unwrap_or_default().to_owned()));
            }
            url = next;
        }
        Err(FetchError::TooManyRedirects)
    }

    /// Checks numeric addresses. The URL parser normalises all notations (`0x7f.1`, `2130706433`). Names are checked when they
    /// are resolved.
    fn check(&self, url: &Url) -> Result<(), FetchError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(FetchError::Scheme(url.scheme().to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(FetchError::Credentials);
        }
        let address: IpAddr = match url.host() {
            Some(Host::Ipv4(address)) => address.into(),
            Some(Host::Ipv6(address)) => address.into(),
            Some(Host::Domain(name)) if is_local_name(name) => {
                return Err(FetchError::NotPublic(name.to_owned()));
            }
            Some(Host::Domain(_)) => return Ok(()),
            None => {
                return Err(FetchError::BadUrl { url: url.to_string(), reason: "it has no host".to_owned() });
            }
        };
        let port = url.port_or_known_default().unwrap_or(0);
        match self.options.policy.permits((address, port).into()) {
            true => Ok(()),
            false => Err(FetchError::NotPublic(address.to_string())),
        }
    }

    async fn get(&self, url: &Url) -> Result<Response, FetchError> {
        let request = self.client()?.get(url.clone()).header(ACCEPT, self.options.accept);
        // No compression, because a small body could unpack to gigabytes.
        let sent = request.header(ACCEPT_ENCODING, "identity").send().await;
        sent.map_err(|error| self.failure(url, &error))
    }

    async fn read(&self, url: Url, mut response: Response) -> Result<FetchedPage, FetchError> {
        if !response.status().is_success() {
            return Err(FetchError::Status(response.status()));
        }
        let header = |name| {
            response.headers().get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        if let Some(encoding) =
            header(CONTENT_ENCODING).filter(|encoding| !encoding.eq_ignore_ascii_case("identity"))
        {
            return Err(FetchError::Compressed(encoding));
        }
        let content_type = header(CONTENT_TYPE);
        let mut body = Vec::new();
        let mut is_cut = false;
        while let Some(chunk) = response.chunk().await.map_err(|error| self.failure(&url, &error))? {
            let room = self.options.max_bytes - body.len();
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if chunk.len() > room {
                is_cut = true;
                break;
            }
        }
        Ok(FetchedPage { url, content_type, body, is_cut })
    }

    fn failure(&self, url: &Url, error: &reqwest::Error) -> FetchError {
        if let Some(forbidden) = ForbiddenAddress::cause_of(error) {
            return FetchError::ForbiddenName(forbidden.clone());
        }
        match error.is_timeout() {
            true => FetchError::Timeout(DEFAULT_CONNECT_TIMEOUT.min(self.options.timeout)),
            false => FetchError::Transport {
                host: url.host_str().unwrap_or_default().to_owned(),
                reason: root_cause(error),
            },
        }
    }
}

fn parse(address: &str, base: Option<&Url>) -> Result<Url, FetchError> {
    let shown = || address.chars().take(200).collect::<String>();
    if address.len() > MAX_URL_BYTES {
        return Err(FetchError::BadUrl {
            url: shown(),
            reason: format!("it is longer than {MAX_URL_BYTES} bytes"),
        });
    }
    let reason = |error: ParseError| match error {
        ParseError::RelativeUrlWithoutBase => "write it with https://".to_owned(),
        error => error.to_string(),
    };
    let mut url = Url::options()
        .base_url(base)
        .parse(address.trim())
        .map_err(|error| FetchError::BadUrl { url: shown(), reason: reason(error) })?;
    url.set_fragment(None);
    Ok(url)
}

/// Whether two addresses have the same host, or a host and its subdomain.
fn is_same_site(from: &Url, to: &Url) -> bool {
    let (Some(Host::Domain(from)), Some(Host::Domain(to))) = (from.host(), to.host()) else {
        return from.host() == to.host();
    };
    let is_below =
        |name: &str, parent: &str| name.strip_suffix(parent).is_some_and(|rest| rest.ends_with('.'));
    from == to || is_below(to, from) || is_below(from, to)
}

/// Names of this machine or its network. The check of their addresses would also refuse them, but only after a look-up.
fn is_local_name(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    name == "localhost" || [".localhost", ".local", ".internal"].iter().any(|ending| name.ends_with(ending))
}

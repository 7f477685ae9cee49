//! Requests to the addresses of sources.
//!
//! The owner configured the address, so its host may be in a private network. A server must not choose other private hosts: a
//! redirect to another host reaches public addresses only, through the egress guard, and never gets a password. A password leaves this
//! machine only over https.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use hob_net::egress::{CheckedResolver, ForbiddenAddress};
use hob_net::{
    DEFAULT_CONNECT_TIMEOUT, HttpClientOptions, ProxyUse, USER_AGENT, http_client, is_loopback,
    response_body, root_cause,
};
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, LOCATION};
use reqwest::{Client, Method, Response, StatusCode};
use secrecy::ExposeSecret;
use url::{Host, Url};

use crate::error::{MAX_REDIRECTS, SourceError};
use crate::types::{SourceHttpOptions, SourceLogin};

/// A request.
pub(crate) struct SourceRequest<'a> {
    pub method: Method,
    pub url: Url,
    pub accept: &'static str,
    /// A larger answer is an error.
    pub max_bytes: usize,
    pub login: Option<&'a SourceLogin>,
    /// For WebDAV: how deep below the address.
    pub depth: Option<&'static str>,
    /// XML.
    pub body: Option<String>,
}

impl SourceRequest<'_> {
    pub fn get(url: Url, accept: &'static str, max_bytes: usize) -> Self {
        SourceRequest { method: Method::GET, url, accept, max_bytes, login: None, depth: None, body: None }
    }
}

/// A complete answer.
pub(crate) struct FetchedSource {
    /// The address after all redirects.
    pub url: Url,
    pub content_type: Option<String>,
    pub body: Vec<u8>,
}

/// The way to a host.
#[derive(Clone, Copy)]
enum Route {
    /// The configured host, on this machine.
    Loopback,
    /// The configured host.
    Configured,
    /// A host that a server named.
    Guarded,
}

pub(crate) struct SourceFetcher {
    options: SourceHttpOptions,
    /// Created when they are needed, because reading the system's certificates takes time and memory.
    loopback: OnceLock<Client>,
    configured: OnceLock<Client>,
    guarded: OnceLock<Client>,
}

impl SourceFetcher {
    pub fn new(options: SourceHttpOptions) -> Self {
        SourceFetcher {
            options,
            loopback: OnceLock::new(),
            configured: OnceLock::new(),
            guarded: OnceLock::new(),
        }
    }

    pub async fn fetch(&self, request: SourceRequest<'_>) -> Result<FetchedSource, SourceError> {
        let work = tokio::time::timeout(self.options.timeout, self.follow(request));
        work.await.unwrap_or(Err(SourceError::Timeout(self.options.timeout)))
    }

    async fn follow(&self, request: SourceRequest<'_>) -> Result<FetchedSource, SourceError> {
        let mut url = request.url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let route = self.route(&request, &url)?;
            let response = self.send(&request, &url, route).await?;
            if !response.status().is_redirection() {
                return self.read(&request, url, response).await;
            }
            let target = response.headers().get(LOCATION).and_then(|target| target.to_str().ok());
            let target = target.ok_or(SourceError::RedirectWithoutTarget)?;
            let next = url.join(target.trim()).map_err(|error| SourceError::BadUrl(error.to_string()))?;
            if url.scheme() == "https" && next.scheme() == "http" {
                return Err(SourceError::Unencrypted);
            }
            url = next;
        }
        Err(SourceError::TooManyRedirects)
    }

    /// Decides how an address is reached, or why it is not.
    fn route(&self, request: &SourceRequest<'_>, url: &Url) -> Result<Route, SourceError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(SourceError::Scheme(url.scheme().to_owned()));
        }
        if is_same_server(&request.url, url) {
            return match (is_loopback(url), request.login) {
                (true, _) => Ok(Route::Loopback),
                (false, Some(_)) if url.scheme() != "https" => {
                    Err(SourceError::PasswordUnencrypted(server_name(url)))
                }
                (false, _) => Ok(Route::Configured),
            };
        }
        if request.login.is_some() {
            return Err(SourceError::LeavesServer(server_name(url)));
        }
        let address: IpAddr = match url.host() {
            Some(Host::Ipv4(address)) => address.into(),
            Some(Host::Ipv6(address)) => address.into(),
            // Names are checked when they are resolved.
            Some(Host::Domain(_)) => return Ok(Route::Guarded),
            None => return Err(SourceError::BadUrl("it has no host".to_owned())),
        };
        let port = url.port_or_known_default().unwrap_or(0);
        match self.options.policy.permits((address, port).into()) {
            true => Ok(Route::Guarded),
            false => Err(SourceError::NotPublic(server_name(url))),
        }
    }

    fn client(&self, route: Route) -> Result<&Client, SourceError> {
        let slot = match route {
            Route::Loopback => &self.loopback,
            Route::Configured => &self.configured,
            Route::Guarded => &self.guarded,
        };
        if let Some(client) = slot.get() {
            return Ok(client);
        }
        // Redirects are followed here, so that every step is checked.
        let options = HttpClientOptions {
            user_agent: Some(USER_AGENT),
            connect_timeout: DEFAULT_CONNECT_TIMEOUT.min(self.options.timeout),
            ..HttpClientOptions::default()
        };
        let options = match route {
            Route::Loopback => HttpClientOptions { proxy: ProxyUse::Never, ..options },
            Route::Configured => options,
            Route::Guarded => HttpClientOptions {
                resolver: Some(Arc::new(CheckedResolver {
                    policy: self.options.policy.clone(),
                    lookup: Arc::clone(&self.options.lookup),
                })),
                // A proxy would resolve names itself, without these checks.
                proxy: ProxyUse::Never,
                // A reused connection would skip the check of its address.
                max_idle_per_host: 0,
                ..options
            },
        };
        let client = http_client(options).map_err(|error| SourceError::Client(root_cause(&error)))?;
        // Concurrent callers may create two; one is kept.
        Ok(slot.get_or_init(|| client))
    }

    async fn send(
        &self,
        request: &SourceRequest<'_>,
        url: &Url,
        route: Route,
    ) -> Result<Response, SourceError> {
        let client = self.client(route)?;
        let mut sending = client
            .request(request.method.clone(), url.clone())
            .header(ACCEPT, request.accept)
            // No compression, because a small body could unpack to gigabytes.
            .header(ACCEPT_ENCODING, "identity");
        if let Some(login) = request.login {
            sending = sending.basic_auth(&login.user, Some(login.password.expose_secret()));
        }
        if let Some(depth) = request.depth {
            sending = sending.header("depth", depth);
        }
        if let Some(body) = &request.body {
            sending = sending.header(CONTENT_TYPE, "application/xml; charset=utf-8").body(body.clone());
        }
        sending.send().await.map_err(|error| self.failure(url, error))
    }

    async fn read(
        &self,
        request: &SourceRequest<'_>,
        url: Url,
        response: Response,
    ) -> Result<FetchedSource, SourceError> {
        let status = response.status();
        if request.login.is_some() && matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Err(SourceError::Login(status));
        }
        if !status.is_success() {
            return Err(SourceError::Status(status));
        }
        let header = |name| {
            response.headers().get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        if let Some(encoding) =
            header(CONTENT_ENCODING).filter(|encoding| !encoding.eq_ignore_ascii_case("identity"))
        {
            return Err(SourceError::Compressed(encoding.chars().take(40).collect()));
        }
        let content_type = header(CONTENT_TYPE);
        let body = response_body(response, request.max_bytes).await;
        let body = body.map_err(|error| self.failure(&url, error))?;
        let body = body.ok_or(SourceError::TooLarge(request.max_bytes))?;
        Ok(FetchedSource { url, content_type, body })
    }

    fn failure(&self, url: &Url, error: reqwest::Error) -> SourceError {
        // The address may contain a key.
        let error = error.without_url();
        if let Some(forbidden) = ForbiddenAddress::cause_of(&error) {
            return SourceError::ForbiddenName(forbidden.clone());
        }
        match error.is_timeout() {
            true => SourceError::Timeout(DEFAULT_CONNECT_TIMEOUT.min(self.options.timeout)),
            false => SourceError::Transport {
                host: url.host_str().unwrap_or_default().to_owned(),
                reason: root_cause(&error),
            },
        }
    }
}

/// Whether an address is on the configured server: the same host and port, or the same host with https on its usual port.
fn is_same_server(configured: &Url, url: &Url) -> bool {
    let is_upgrade = url.scheme() == "https" && url.port().is_none();
    configured.host() == url.host()
        && (configured.origin() == url.origin() || (is_upgrade && configured.port().is_none()))
}

/// The host and the port of an address.
pub(crate) fn server_name(url: &Url) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}{port}", url.host_str().unwrap_or_default())
}

/// Reads the address of a source.
pub(crate) fn parse_address(address: &str) -> Result<Url, SourceError> {
    Url::parse(address).map_err(|error| SourceError::BadUrl(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_leaves_this_machine_only_encrypted() {
        let fetcher = SourceFetcher::new(SourceHttpOptions::default());
        let login = SourceLogin { user: "ann".to_owned(), password: "s3cret".to_owned().into() };
        let refusal = |address: &str, login: Option<&SourceLogin>| {
            let url = Url::parse(address).unwrap();
            let request = SourceRequest { login, ..SourceRequest::get(url.clone(), "text/xml", 1) };
            fetcher.route(&request, &url).err().map(|error| error.to_string())
        };
        for address in ["https://nas:5232/", "http://127.0.0.1:5232/", "http://[::1]/", "http://localhost/"] {
            assert_eq!(refusal(address, Some(&login)), None, "{address}");
        }
        for address in ["http://nas/", "http://192.168.0.7/", "http://cloud.example.org/dav/"] {
            let reason = refusal(address, Some(&login)).unwrap();
            assert!(reason.contains("Use an address with https"), "{reason}");
            assert_eq!(refusal(address, None), None, "{address}");
        }
    }

    #[test]
    fn another_port_is_another_server() {
        let same = |configured: &str, url: &str| {
            is_same_server(&Url::parse(configured).unwrap(), &Url::parse(url).unwrap())
        };
        assert!(same("http://nas/a", "http://nas/b"));
        assert!(same("http://nas/a", "https://nas/b"));
        assert!(same("http://nas:8080/a", "http://nas:8080/b"));
        for other in ["http://nas:8081/", "https://nas/", "http://nas2:8080/", "https://nas:8080/"] {
            assert!(!same("http://nas:8080/a", other), "{other}");
        }
    }
}

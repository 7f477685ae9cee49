//! Which requests the server accepts: a guard against DNS rebinding, and the optional key. It also finds out how a request got
//! here: without a key, a forwarded request is not the owner's.
//!
//! A web page can make a browser send requests to this machine under a host name of the page's choice. The page cannot set the
//! `Host` and `Origin` headers, so the guard refuses foreign names in them. An IP address cannot be rebound, so it is accepted
//! as a `Host`. As an `Origin` it is a page at that address, which is foreign. The same holds for the names of this machine on its own
//! network: another machine there could claim one of them, and show a page under it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, HeaderName, Method, Request, Version, header};
use hob_config::ServerConfig;
use hob_keys::{IdentityService, KeyCheck, KeyService, SECRET_PREFIX, looks_like_token};
use secrecy::{ExposeSecret, SecretString};
use subtle::ConstantTimeEq;
use url::{Host, Url};

use crate::caller::{Proof, RequestOrigin, is_local};
use crate::error::{ApiError, ApiResult};
use crate::limits::key_backoff::KeyBackoff;

/// Anthropic's header for the key.
const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// Paths that need no key: load balancers have none, and the pages contain no data and ask for the key themselves.
const PATHS_WITHOUT_KEY: &[&str] = &[
    "/health",
    "/health/live",
    "/health/ready",
    "/",
    "/chat",
    "/chat/",
    "/documents",
    "/tasks",
    "/channels",
    "/models",
    "/dashboard",
    "/team",
    "/settings",
];

/// What the guard found out about a request that it accepts.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) origin: RequestOrigin,
    pub(crate) proof: Proof,
}

/// What knows callers besides the key of the configuration.
#[derive(Clone, Copy, Default)]
pub(crate) struct CallerSources<'a> {
    /// The named keys.
    pub(crate) keys: Option<&'a KeyService>,
    /// Tokens of an identity provider.
    pub(crate) identity: Option<&'a IdentityService>,
}

/// The checks of the configuration that is in use.
pub(crate) struct Guard {
    api_key: Option<SecretString>,
    allowed_hosts: Vec<String>,
    /// The names of this machine on its own network, which are accepted as a `Host` only.
    machine_names: Vec<String>,
    cors_origins: Vec<String>,
    backoff: KeyBackoff,
}

/// What the host name of a request says about its way here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HostKind {
    /// A name of this machine, which means no other machine.
    ThisMachine,
    /// An IP address, a name in `allowed_hosts` or the machine's name on its network: other machines can use it.
    OtherName,
    Unknown,
}

impl Guard {
    /// A guard for a machine that has these names on its own network.
    pub(crate) fn new(config: &ServerConfig, machine_names: Vec<String>) -> Self {
        let mut allowed_hosts = config.allowed_hosts.clone();
        // A host name to listen on is also a name for requests.
        allowed_hosts.push(config.host.to_ascii_lowercase());
        Guard {
            api_key: config.api_key.clone(),
            allowed_hosts,
            machine_names,
            cors_origins: config.cors_origins.clone(),
            backoff: KeyBackoff::new(),
        }
    }

    /// Accepts a request of `peer`, or returns why not.
    pub(crate) fn check<B>(
        &self,
        request: &Request<B>,
        peer: IpAddr,
        sources: CallerSources<'_>,
    ) -> ApiResult<Accepted> {
        let headers = request.headers();
        let host = named_host(request)?;
        let host_kind = self.check_host(host)?;
        let origin = self.check_origin(headers, host)?;
        let is_forwarded = || {
            host_kind != HostKind::ThisMachine
                // nginx proxies with HTTP/1.0 by default, and then adds no header that names the client.
                || request.version() < Version::HTTP_11
                || is_forwarded(headers)
        };
        let origin = match origin {
            RequestOrigin::Direct if is_forwarded() => RequestOrigin::Forwarded,
            origin => origin,
        };
        let proof = match needs_key(request) {
            true => self.check_key(headers, peer, origin, sources)?,
            // No key was checked, so none is proven.
            false => Proof::None,
        };
        Ok(Accepted { origin, proof })
    }

    /// The answer to a wrong key, after a delay if there were too many.
    pub(crate) async fn delay_wrong_key(&self, error: ApiError, peer: IpAddr) -> ApiError {
        match self.backoff.hold_back(peer).await {
            true => error,
            false => ApiError::too_many_wrong_keys(Duration::from_secs(1)),
        }
    }

    fn check_host(&self, host: Option<&str>) -> ApiResult<HostKind> {
        // HTTP/1.0 clients can send none. No browser is one of them.
        let Some(host) = host else { return Ok(HostKind::ThisMachine) };
        match self.host_kind(host_of(host)) {
            HostKind::Unknown => Err(ApiError::foreign_host(host)),
            known => Ok(known),
        }
    }

    fn check_origin(&self, headers: &HeaderMap, host: Option<&str>) -> ApiResult<RequestOrigin> {
        let Some(origin) = headers.get(header::ORIGIN) else {
            return Ok(RequestOrigin::Direct);
        };
        let origin = origin.to_str().unwrap_or("?");
        let is_listed = |wanted: &str| self.cors_origins.iter().any(|known| known == wanted);
        if is_listed(origin) || self.is_own_page(origin, host) {
            Ok(RequestOrigin::Direct)
        } else if is_listed("*") {
            Ok(RequestOrigin::UnlistedPage)
        } else {
            Err(ApiError::foreign_origin(origin))
        }
    }

    /// Whether the origin is a page of this machine, or a page that was loaded from the address that it calls now. The scheme is
    /// not compared, because a TLS proxy changes it.
    fn is_own_page(&self, origin: &str, host: Option<&str>) -> bool {
        let Ok(page) = Url::parse(origin) else { return false };
        let is_loopback = match page.host() {
            Some(Host::Ipv4(ip)) => ip.is_loopback(),
            Some(Host::Ipv6(ip)) => ip.to_canonical().is_loopback(),
            Some(Host::Domain(_)) | None => false,
        };
        let is_our_name = page.host_str().is_some_and(|name| self.is_our_name(name.trim_end_matches('.')));
        let called_alike = || {
            let (_, authority) = origin.split_once("://")?;
            Some(host?.eq_ignore_ascii_case(authority))
        };
        is_loopback || is_our_name || called_alike() == Some(true)
    }

    fn check_key(
        &self,
        headers: &HeaderMap,
        peer: IpAddr,
        origin: RequestOrigin,
        sources: CallerSources<'_>,
    ) -> ApiResult<Proof> {
        let CallerSources { keys, identity } = sources;
        let has_named = keys.is_some_and(|keys| keys.snapshot().has_keys());
        if self.api_key.is_none() && !has_named && identity.is_none() {
            return Ok(Proof::None);
        }
        // Before the wait for wrong keys: behind a proxy, all callers have one address, and a signature cannot be guessed.
        if let Some(identity) = identity
            && let Some(token) = sent_token(headers, identity)?
        {
            return identity.check(token).map(Proof::NamedKey).map_err(ApiError::identity_refused);
        }
        if let Some(wait) = self.backoff.refused_for(peer, Instant::now) {
            return Err(ApiError::too_many_wrong_keys(wait));
        }
        let sent = sent_key(headers).trim();
        let is_owners = self
            .api_key
            .as_ref()
            .is_some_and(|expected| sent.as_bytes().ct_eq(expected.expose_secret().as_bytes()).into());
        if is_owners {
            self.backoff.was_right(peer);
            return Ok(Proof::OwnerKey);
        }
        match keys.map(|keys| keys.check(sent)) {
            Some(KeyCheck::Valid(key)) => {
                self.backoff.was_right(peer);
                return Ok(Proof::NamedKey(key));
            }
            Some(KeyCheck::Invalid { name, why }) => return Err(ApiError::invalid_key(&name, why)),
            Some(KeyCheck::Unread) => return Err(ApiError::keys_unread()),
            Some(KeyCheck::Unknown) | None => {}
        }
        // A proxy that adds tokens is often on this machine, and then what it forwards without one is not the owner's.
        let is_behind_proxy = identity.is_some_and(|identity| identity.header().is_some());
        // Clients on this machine often send a key that means nothing. A wrong named key is a mistake.
        if self.api_key.is_none()
            && is_local(peer, origin)
            && !is_behind_proxy
            && !sent.starts_with(SECRET_PREFIX)
        {
            return Ok(Proof::None);
        }
        // A request without a key is not a guess: programs learn that way that a key is needed.
        if headers.contains_key(header::AUTHORIZATION) || headers.contains_key(X_API_KEY) {
            self.backoff.was_wrong(peer, Instant::now());
        }
        Err(match identity {
            Some(identity) if sent.is_empty() => {
                ApiError::missing_token(identity.issuer(), identity.header())
            }
            None if sent.is_empty() => ApiError::missing_key(has_named),
            Some(_) | None => ApiError::wrong_key(has_named),
        })
    }

    /// An IP address cannot be rebound, and `localhost` is this machine. No page of another network can have the machine's own name, or its
    /// name in multicast DNS. Other names must be in the configuration.
    fn host_kind(&self, host: &str) -> HostKind {
        // The usual names first, because a full parse is slow.
        if host == "localhost" {
            return HostKind::ThisMachine;
        }
        if let Ok(ip) = host.parse::<Ipv4Addr>() {
            return kind_of_address(ip.into());
        }
        let name = host.trim_end_matches('.').to_ascii_lowercase();
        match Host::parse(&name) {
            Ok(Host::Ipv4(ip)) => kind_of_address(ip.into()),
            Ok(Host::Ipv6(ip)) => kind_of_address(ip.into()),
            Ok(Host::Domain(name)) if is_localhost(&name) => HostKind::ThisMachine,
            Ok(Host::Domain(name)) if self.is_our_name(&name) || self.machine_names.contains(&name) => {
                HostKind::OtherName
            }
            Ok(Host::Domain(_)) | Err(_) => HostKind::Unknown,
        }
    }

    fn is_our_name(&self, name: &str) -> bool {
        is_localhost(name) || self.allowed_hosts.iter().any(|allowed| allowed == name)
    }
}

/// Whether a server with a key asks for it.
fn needs_key<B>(request: &Request<B>) -> bool {
    // A preflight request has no key.
    let is_preflight = request.method() == Method::OPTIONS && request.headers().contains_key(header::ORIGIN);
    !is_preflight && !PATHS_WITHOUT_KEY.contains(&request.uri().path())
}

/// The key of a request: the bearer token, or Anthropic's header.
fn sent_key(headers: &HeaderMap) -> &str {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = text(header::AUTHORIZATION)
        .and_then(|value| value.strip_prefix("Bearer ").or_else(|| value.strip_prefix("bearer ")));
    bearer.or_else(|| text(X_API_KEY)).unwrap_or_default()
}

/// The token of a request: in the header of the proxy if there is one, else where keys are.
fn sent_token<'a>(headers: &'a HeaderMap, identity: &IdentityService) -> ApiResult<Option<&'a str>> {
    let Some(name) = identity.header() else {
        return Ok(Some(sent_key(headers).trim()).filter(|sent| looks_like_token(sent)));
    };
    let mut sent = headers.get_all(name).iter();
    match (sent.next(), sent.next()) {
        (None, _) => Ok(None),
        (Some(token), None) => {
            let token = token.to_str().unwrap_or_default().trim();
            Ok(Some(token.strip_prefix("Bearer ").unwrap_or(token)))
        }
        (Some(_), Some(_)) => Err(ApiError::several_tokens(name)),
    }
}

fn is_localhost(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}

/// `hob serve` prints the unspecified address, and it reaches no other machine. Other addresses of this machine do not count: a
/// request from loopback to one of them came through a program that listens there.
fn kind_of_address(ip: IpAddr) -> HostKind {
    let ip = ip.to_canonical();
    if ip.is_loopback() || ip.is_unspecified() { HostKind::ThisMachine } else { HostKind::OtherName }
}

/// Whether a header shows that a proxy forwarded the request.
fn is_forwarded(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| match name.as_str() {
        "forwarded" | "via" | "x-real-ip" | "x-forwarded" | "true-client-ip" | "x-client-ip"
        | "fly-client-ip" => true,
        name => {
            ["x-forwarded-", "cf-", "x-envoy-", "x-original-"].iter().any(|prefix| name.starts_with(prefix))
        }
    })
}

/// The host that the request names, with its port. An absolute address in the request line overrides the header (RFC 9112,
/// section 3.2.2). The header must be present once and well-formed all the same.
fn named_host<B>(request: &Request<B>) -> ApiResult<Option<&str>> {
    let mut headers = request.headers().get_all(header::HOST).iter();
    let host = match (headers.next(), headers.next()) {
        (Some(host), None) => Some(authority(host.to_str().unwrap_or_default())?),
        (None, _) if request.version() < Version::HTTP_11 => None,
        (None, _) => {
            return Err(ApiError::malformed("the request has no Host header, which HTTP/1.1 requires"));
        }
        (Some(_), Some(_)) => return Err(ApiError::malformed("the request has more than one Host header")),
    };
    match request.uri().authority() {
        Some(named) => authority(named.as_str()).map(Some),
        None => Ok(host),
    }
}

/// The text, if it is a host with or without a port.
fn authority(text: &str) -> ApiResult<&str> {
    let host = host_of(text);
    let port = &text[host.len()..];
    let is_port = port.is_empty() || port.len() == 1 || port[1..].parse::<u16>().is_ok();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=".contains(&byte);
    let is_host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(ip) => ip.parse::<Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.bytes().all(is_plain),
    };
    if is_port && is_host {
        Ok(text)
    } else {
        Err(ApiError::malformed("the request names a malformed host; send one such as 'localhost:8000'"))
    }
}

/// The host without its port.
fn host_of(authority: &str) -> &str {
    match authority.rfind(':') {
        // The colons inside `[::1]` do not start a port.
        Some(colon) if !authority[colon..].contains(']') => &authority[..colon],
        _ => authority,
    }
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;

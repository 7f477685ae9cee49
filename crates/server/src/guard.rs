//! Who may come in: the guard against DNS rebinding, and the optional key. And who comes in as what: without a key, a request
//! that something has forwarded is not its neighbour's.
//!
//! A page in somebody's browser can make that browser send requests to this machine under the page's own name. The page
//! cannot choose the `Host` and `Origin` headers though, so requests under a foreign name are turned away. The two are not
//! alike: an address of digits cannot be rebound, so as a `Host` it is fine; as an `Origin` it is a page that lies there.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, Method, Request, Version, header};
use hob_config::ServerConfig;
use secrecy::{ExposeSecret, SecretString};
use subtle::ConstantTimeEq;
use url::{Host, Url};

use crate::caller::RequestOrigin;
use crate::error::ApiError;
use crate::limits::key_backoff::KeyBackoff;

/// What needs no key: a load balancer has none, and the pages have no data and ask for the key themselves.
const PATHS_WITHOUT_KEY: [&str; 5] = ["/health", "/", "/dashboard", "/chat", "/chat/"];

/// The guard.
pub(crate) struct Guard {
    api_key: Option<SecretString>,
    allowed_hosts: Vec<String>,
    cors_origins: Vec<String>,
    backoff: KeyBackoff,
}

/// What the name means by which a caller calls us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HostKind {
    /// A name that this machine has for itself, so nobody else can mean it.
    ThisMachine,
    /// An address of digits, or a name that the owner allows: others may come by it.
    OtherName,
    Unknown,
}

impl Guard {
    pub(crate) fn new(config: &ServerConfig) -> Self {
        let mut allowed_hosts = config.allowed_hosts.clone();
        // Whoever binds a name means to be called by it.
        allowed_hosts.push(config.host.to_ascii_lowercase());
        Guard {
            api_key: config.api_key.clone(),
            allowed_hosts,
            cors_origins: config.cors_origins.clone(),
            backoff: KeyBackoff::new(),
        }
    }

    /// Whether a key is asked for.
    pub(crate) fn is_keyed(&self) -> bool {
        self.api_key.is_some()
    }

    /// Lets a request of `peer` in, or says why not.
    pub(crate) fn check<B>(&self, request: &Request<B>, peer: IpAddr) -> Result<RequestOrigin, ApiError> {
        let headers = request.headers();
        let host = named_host(request)?;
        let host_kind = self.check_host(host)?;
        let origin = self.check_origin(headers, host)?;
        // A browser asks beforehand without the key whether it may ask with it.
        let is_preflight = request.method() == Method::OPTIONS && headers.contains_key(header::ORIGIN);
        if !is_preflight && !PATHS_WITHOUT_KEY.contains(&request.uri().path()) {
            self.check_key(headers, peer)?;
        }
        let is_forwarded = || {
            host_kind != HostKind::ThisMachine
                // How nginx asks unless it is told otherwise, and then it adds no header that says for whom.
                || request.version() < Version::HTTP_11
                || is_forwarded(headers)
        };
        match origin {
            RequestOrigin::Direct if is_forwarded() => Ok(RequestOrigin::Forwarded),
            origin => Ok(origin),
        }
    }

    /// What is answered to a wrong key, and when: those who try keys have to wait.
    pub(crate) async fn delay_wrong_key(&self, error: ApiError, peer: IpAddr) -> ApiError {
        match self.backoff.hold_back(peer).await {
            true => error,
            false => ApiError::too_many_wrong_keys(Duration::from_secs(1)),
        }
    }

    fn check_host(&self, host: Option<&str>) -> Result<HostKind, ApiError> {
        // HTTP/1.0 clients may send none; no browser is among them.
        let Some(host) = host else { return Ok(HostKind::ThisMachine) };
        match self.host_kind(host_of(host)) {
            HostKind::Unknown => Err(ApiError::foreign_host(host)),
            known => Ok(known),
        }
    }

    fn check_origin(&self, headers: &HeaderMap, host: Option<&str>) -> Result<RequestOrigin, ApiError> {
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

    /// Whether a page of this machine, or one that was fetched at the very address by which it calls us now. The scheme is not
    /// compared: only who puts TLS in front of us knows it.
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

    fn check_key(&self, headers: &HeaderMap, peer: IpAddr) -> Result<(), ApiError> {
        let Some(expected) = &self.api_key else {
            return Ok(());
        };
        let now = Instant::now();
        if let Some(wait) = self.backoff.refused_for(peer, now) {
            return Err(ApiError::too_many_wrong_keys(wait));
        }
        let sent = headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.strip_prefix("Bearer ").or_else(|| value.strip_prefix("bearer ")))
            .unwrap_or_default();
        let same: bool = sent.trim().as_bytes().ct_eq(expected.expose_secret().as_bytes()).into();
        if same {
            self.backoff.was_right(peer);
            return Ok(());
        }
        // Nobody guesses by sending nothing: that is how programs find out that a key is wanted.
        if headers.contains_key(header::AUTHORIZATION) {
            self.backoff.was_wrong(peer, now);
        }
        Err(ApiError::wrong_key())
    }

    /// An IP address cannot be rebound, `localhost` belongs to this machine, and the rest is for the owner to name.
    fn host_kind(&self, host: &str) -> HostKind {
        // Nearly everybody calls by one of these, and reading a name by all the rules takes long.
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
            Ok(Host::Domain(name)) if self.is_our_name(&name) => HostKind::OtherName,
            Ok(Host::Domain(_)) | Err(_) => HostKind::Unknown,
        }
    }

    fn is_our_name(&self, name: &str) -> bool {
        is_localhost(name) || self.allowed_hosts.iter().any(|allowed| allowed == name)
    }
}

fn is_localhost(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}

/// The address that means any is what `hob serve` prints, and nobody can reach another machine by it. Other addresses of this
/// machine do not count: who comes from loopback by one of them came through something that listens there.
fn kind_of_address(ip: IpAddr) -> HostKind {
    let ip = ip.to_canonical();
    if ip.is_loopback() || ip.is_unspecified() { HostKind::ThisMachine } else { HostKind::OtherName }
}

/// Whether a proxy says that it passes the request on for somebody.
fn is_forwarded(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| match name.as_str() {
        "forwarded" | "via" | "x-real-ip" | "x-forwarded" | "true-client-ip" | "x-client-ip"
        | "fly-client-ip" => true,
        name => {
            ["x-forwarded-", "cf-", "x-envoy-", "x-original-"].iter().any(|prefix| name.starts_with(prefix))
        }
    })
}

/// By what name the caller calls us, with the port. An address of the whole in the first line goes before the header, as the
/// standard says (RFC 9112, section 3.2.2), but excuses no header that is missing, doubled or malformed.
fn named_host<B>(request: &Request<B>) -> Result<Option<&str>, ApiError> {
    let mut headers = request.headers().get_all(header::HOST).iter();
    let host = match (headers.next(), headers.next()) {
        (Some(host), None) => Some(authority(host.to_str().unwrap_or_default())?),
        (None, _) if request.version() < Version::HTTP_11 => None,
        (None, _) => {
            return Err(ApiError::malformed("the request has no Host header, which HTTP/1.1 demands"));
        }
        (Some(_), Some(_)) => return Err(ApiError::malformed("the request has more than one Host header")),
    };
    match request.uri().authority() {
        Some(named) => authority(named.as_str()).map(Some),
        None => Ok(host),
    }
}

/// The text, if it is a host with or without a port, and nothing else.
fn authority(text: &str) -> Result<&str, ApiError> {
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
        // The colons inside `[::1]` are no port.
        Some(colon) if !authority[colon..].contains(']') => &authority[..colon],
        _ => authority,
    }
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;

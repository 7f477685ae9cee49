//! The check of `Host` and `Origin` against hostile websites that are open in the owner's browser, and against DNS rebinding. It also
//! finds out how a request got here: without a key, a forwarded request is not the owner's.
//!
//! A web page can make a browser send requests to this machine under a host name of the page's choice. The page cannot set the
//! `Host` and `Origin` headers, so the guard refuses foreign names in them. An IP address cannot be rebound, so it is accepted
//! as a `Host`. As an `Origin` it is a page at that address, which is foreign. The same holds for the names of this machine on its own
//! network: another machine there could claim one of them, and show a page under it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use axum::http::{HeaderMap, Request, Version, header};
use hob_config::ServerConfig;
use url::{Host, Url};

use crate::caller_role::RequestOrigin;
use crate::error::{ApiError, ApiResult};

/// The names under which requests may call this server, and the pages that may call it.
pub(super) struct OriginCheck {
    allowed_hosts: Vec<String>,
    /// The names of this machine on its own network, which are accepted as a `Host` only.
    machine_names: Vec<String>,
    cors_origins: Vec<String>,
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

impl OriginCheck {
    /// A check for a machine that has these names on its own network.
    pub(super) fn new(config: &ServerConfig, machine_names: Vec<String>) -> Self {
        let mut allowed_hosts = config.allowed_hosts.clone();
        // A host name to listen on is also a name for requests.
        allowed_hosts.push(config.host.to_ascii_lowercase());
        OriginCheck { allowed_hosts, machine_names, cors_origins: config.cors_origins.clone() }
    }

    /// How an accepted request got here, or why it is refused.
    pub(super) fn check<B>(&self, request: &Request<B>) -> ApiResult<RequestOrigin> {
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
        Ok(match origin {
            RequestOrigin::Direct if is_forwarded() => RequestOrigin::Forwarded,
            origin => origin,
        })
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

//! Who may come in: the guard against DNS rebinding, and the optional key.
//!
//! A page in somebody's browser can make that browser send requests to this machine under the page's own name. The page
//! cannot choose the `Host` and `Origin` headers though, so requests under a foreign name are turned away. The two are not
//! alike: an address of digits cannot be rebound, so as a `Host` it is fine; as an `Origin` it is a page that lies there.

use std::net::Ipv4Addr;

use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, Request, header};
use hob_config::ServerConfig;
use secrecy::{ExposeSecret, SecretString};
use subtle::ConstantTimeEq;
use url::{Host, Url};

use crate::error::ApiError;
use crate::trust::Visitor;

/// What needs no key: a load balancer has none, and the pages have no data and ask for the key themselves.
const OPEN_PATHS: [&str; 3] = ["/health", "/", "/dashboard"];

/// The gate.
pub(crate) struct Gate {
    api_key: Option<SecretString>,
    allowed_hosts: Vec<String>,
    cors_origins: Vec<String>,
}

impl Gate {
    pub(crate) fn new(config: &ServerConfig) -> Self {
        let mut allowed_hosts = config.allowed_hosts.clone();
        // Whoever binds a name means to be called by it.
        allowed_hosts.push(config.host.to_ascii_lowercase());
        Gate { api_key: config.api_key.clone(), allowed_hosts, cors_origins: config.cors_origins.clone() }
    }

    /// Lets a request in, or says why not.
    pub(crate) fn check<B>(&self, request: &Request<B>) -> Result<Visitor, ApiError> {
        let headers = request.headers();
        let host = named_host(request);
        self.check_host(host)?;
        let visitor = self.check_origin(headers, host)?;
        // A browser asks beforehand without the key whether it may ask with it.
        let is_preflight = request.method() == Method::OPTIONS && headers.contains_key(header::ORIGIN);
        if !is_preflight && !OPEN_PATHS.contains(&request.uri().path()) {
            self.check_key(headers)?;
        }
        Ok(visitor)
    }

    fn check_host(&self, host: Option<&str>) -> Result<(), ApiError> {
        match host {
            Some(host) if !self.is_ours(host_of(host)) => Err(ApiError::foreign_host(host)),
            // HTTP/1.0 clients may send none; no browser is among them.
            Some(_) | None => Ok(()),
        }
    }

    fn check_origin(&self, headers: &HeaderMap, host: Option<&str>) -> Result<Visitor, ApiError> {
        let Some(origin) = headers.get(header::ORIGIN) else {
            return Ok(Visitor::Expected);
        };
        let origin = origin.to_str().unwrap_or("?");
        let is_listed = |wanted: &str| self.cors_origins.iter().any(|known| known == wanted);
        if is_listed(origin) || self.is_own_page(origin, host) {
            Ok(Visitor::Expected)
        } else if is_listed("*") {
            Ok(Visitor::AnyPage)
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

    fn check_key(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let Some(expected) = &self.api_key else {
            return Ok(());
        };
        let sent = headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.strip_prefix("Bearer ").or_else(|| value.strip_prefix("bearer ")))
            .unwrap_or_default();
        let same: bool = sent.trim().as_bytes().ct_eq(expected.expose_secret().as_bytes()).into();
        if same { Ok(()) } else { Err(ApiError::wrong_key()) }
    }

    /// An IP address cannot be rebound, `localhost` belongs to this machine, and the rest is for the owner to name.
    fn is_ours(&self, host: &str) -> bool {
        // Nearly everybody calls by one of these, and reading a name by all the rules takes long.
        if host == "localhost" || host.parse::<Ipv4Addr>().is_ok() {
            return true;
        }
        let name = host.trim_end_matches('.').to_ascii_lowercase();
        match Host::parse(&name) {
            Ok(Host::Ipv4(_) | Host::Ipv6(_)) => true,
            Ok(Host::Domain(name)) => self.is_our_name(&name),
            Err(_) => false,
        }
    }

    fn is_our_name(&self, name: &str) -> bool {
        name == "localhost"
            || name.ends_with(".localhost")
            || self.allowed_hosts.iter().any(|allowed| allowed == name)
    }
}

/// By what name the caller calls us, with the port.
fn named_host<B>(request: &Request<B>) -> Option<&str> {
    match request.headers().get(header::HOST) {
        Some(host) => Some(host.to_str().unwrap_or("?")),
        None => request.uri().authority().map(Authority::as_str),
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
#[path = "gate_tests.rs"]
mod tests;

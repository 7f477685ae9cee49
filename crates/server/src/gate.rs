//! Who may come in: the guard against DNS rebinding, and the optional key.
//!
//! A page in somebody's browser can make that browser send requests to this machine under the page's own name. The page
//! cannot choose the `Host` and `Origin` headers though, so requests under a foreign name are turned away.

use std::net::Ipv4Addr;

use axum::http::{HeaderMap, Method, Request, header};
use hob_config::ServerConfig;
use secrecy::{ExposeSecret, SecretString};
use subtle::ConstantTimeEq;
use url::{Host, Url};

use crate::error::ApiError;

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
    pub(crate) fn check<B>(&self, request: &Request<B>) -> Result<(), ApiError> {
        let headers = request.headers();
        self.check_host(request)?;
        self.check_origin(headers)?;
        // A browser asks beforehand without the key whether it may ask with it.
        let is_preflight = request.method() == Method::OPTIONS && headers.contains_key(header::ORIGIN);
        if is_preflight || OPEN_PATHS.contains(&request.uri().path()) {
            return Ok(());
        }
        self.check_key(headers)
    }

    fn check_host<B>(&self, request: &Request<B>) -> Result<(), ApiError> {
        // HTTP/1.0 clients may send no Host; no browser is among them.
        let host = match request.headers().get(header::HOST) {
            Some(host) => host.to_str().unwrap_or("?"),
            None => match request.uri().authority() {
                Some(authority) => authority.as_str(),
                None => return Ok(()),
            },
        };
        if self.is_ours(host_of(host)) { Ok(()) } else { Err(ApiError::foreign("Host", host)) }
    }

    fn check_origin(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let Some(origin) = headers.get(header::ORIGIN) else {
            return Ok(());
        };
        let origin = origin.to_str().unwrap_or("?");
        let invited = self.cors_origins.iter().any(|known| known == "*" || known == origin);
        let from_here = || {
            let url = Url::parse(origin).ok()?;
            let host = url.host_str()?;
            Some(self.is_ours(host))
        };
        if invited || from_here() == Some(true) { Ok(()) } else { Err(ApiError::foreign("Origin", origin)) }
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
            Ok(Host::Domain(name)) => {
                name == "localhost" || name.ends_with(".localhost") || self.allowed_hosts.contains(&name)
            }
            Err(_) => false,
        }
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

//! The one builder of HTTP clients.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use reqwest::{Client, redirect};
use url::Url;

use crate::egress::CheckedResolver;
use crate::local_address::is_loopback;
use crate::tls::install_crypto;

/// The value of `User-Agent`.
pub const USER_AGENT: &str = concat!("hob/", env!("CARGO_PKG_VERSION"));

pub const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The idle time after which a connection is closed.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(90);

/// The options of a client. The defaults follow no redirect.
#[derive(Clone)]
pub struct HttpClientOptions {
    pub headers: HeaderMap,
    pub user_agent: Option<&'static str>,
    pub redirects: RedirectPolicy,
    pub proxy: ProxyUse,
    pub connect_timeout: Duration,
    /// The longest time for a complete request, including the body of the answer.
    pub timeout: Option<Duration>,
    /// The longest wait for the next bytes of an answer.
    pub read_timeout: Option<Duration>,
    pub pool_idle_timeout: Duration,
    /// Idle connections for each host.
    pub max_idle_per_host: usize,
    /// Resolves host names instead of the system.
    pub resolver: Option<Arc<CheckedResolver>>,
    /// The address of one name, which is then not looked up.
    pub fixed_address: Option<FixedAddress>,
    pub certificates: CertificateCheck,
}

/// Whether a server must prove its name with a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertificateCheck {
    /// By the authorities of the system.
    Verify,
    /// Any certificate is accepted. For servers on this machine, whose certificates are for their public names: connections to them
    /// never leave the machine.
    Accept,
}

/// A name whose address is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixedAddress {
    pub name: String,
    pub address: SocketAddr,
}

impl Default for HttpClientOptions {
    fn default() -> Self {
        HttpClientOptions {
            headers: HeaderMap::new(),
            user_agent: None,
            redirects: RedirectPolicy::Never,
            proxy: ProxyUse::System,
            connect_timeout: DEFAULT_CONNECT_TIMEOUT,
            timeout: None,
            read_timeout: None,
            pool_idle_timeout: POOL_IDLE_TIMEOUT,
            max_idle_per_host: usize::MAX,
            resolver: None,
            fixed_address: None,
            certificates: CertificateCheck::Verify,
        }
    }
}

/// Which redirects a client follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectPolicy {
    /// None, because a redirect could send keys and contents to a third party.
    Never,
    /// Up to `most`, and none from `https` to `http`.
    KeepEncryption { most: usize },
}

impl RedirectPolicy {
    fn into_reqwest(self) -> redirect::Policy {
        match self {
            RedirectPolicy::Never => redirect::Policy::none(),
            RedirectPolicy::KeepEncryption { most } => {
                redirect::Policy::custom(move |attempt| keep_encryption(attempt, most))
            }
        }
    }
}

fn keep_encryption(attempt: redirect::Attempt<'_>, most: usize) -> redirect::Action {
    let was_encrypted = attempt.previous().last().is_some_and(|url| url.scheme() == "https");
    if was_encrypted && attempt.url().scheme() != "https" {
        attempt.error("it redirects from https to http")
    } else if attempt.previous().len() > most {
        attempt.error("too many redirects")
    } else {
        attempt.follow()
    }
}

/// Whether requests use the proxy that the environment names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyUse {
    System,
    Never,
}

impl ProxyUse {
    /// The system's proxy, except for addresses of this machine.
    pub fn towards(url: &Url) -> Self {
        if is_loopback(url) { ProxyUse::Never } else { ProxyUse::System }
    }
}

/// Creates a client. Reading the system's certificates takes time: create one and clone it.
pub fn http_client(options: HttpClientOptions) -> reqwest::Result<Client> {
    install_crypto();
    let mut builder = Client::builder()
        .default_headers(options.headers)
        .redirect(options.redirects.into_reqwest())
        // The next server must not learn the previous address.
        .referer(false)
        .connect_timeout(options.connect_timeout)
        .pool_idle_timeout(options.pool_idle_timeout)
        .pool_max_idle_per_host(options.max_idle_per_host)
        .tcp_nodelay(true);
    if let Some(user_agent) = options.user_agent {
        builder = builder.user_agent(user_agent);
    }
    if let Some(timeout) = options.timeout {
        builder = builder.timeout(timeout);
    }
    if let Some(timeout) = options.read_timeout {
        builder = builder.read_timeout(timeout);
    }
    if let Some(resolver) = options.resolver {
        builder = builder.dns_resolver(resolver);
    }
    if let Some(FixedAddress { name, address }) = options.fixed_address {
        builder = builder.resolve(&name, address);
    }
    if options.proxy == ProxyUse::Never {
        builder = builder.no_proxy();
    }
    if options.certificates == CertificateCheck::Accept {
        builder = builder.tls_danger_accept_invalid_certs(true);
    }
    builder.build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_never_used_for_this_machine() {
        for (address, expected) in [
            ("http://localhost:8000", ProxyUse::Never),
            ("ws://127.0.0.1:1", ProxyUse::Never),
            ("https://example.org", ProxyUse::System),
        ] {
            assert_eq!(ProxyUse::towards(&Url::parse(address).unwrap()), expected, "{address}");
        }
    }
}

//! Which program listens at an address: a running Hob server, another program, or none. Asks `GET /health` without a key, as
//! any local program can.

use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::future::join_all;
use hob_config::ServerConfig;
use hob_net::{CertificateCheck, HttpClientOptions, ProxyUse, http_client};
use http::{HeaderMap, StatusCode};
use tokio::net::lookup_host;

/// A server that takes longer to answer counts as another program.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);

/// How many servers of one home are remembered. Servers that were killed leave their address behind.
pub const MAX_ADDRESSES: usize = 8;

/// Bytes that hold as many addresses.
const MAX_FILE_BYTES: u64 = 1 << 10;

/// What listens at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerProbe {
    NoListener,
    /// A program that is not Hob, or a Hob that does not answer in time.
    OtherProgram,
    Hob {
        /// The status of its health check: 200, or 503 when its engine does not answer.
        health: u16,
        scheme: UrlScheme,
    },
}

/// How a server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrlScheme {
    Http,
    Https,
}

impl UrlScheme {
    /// The one of a server with these settings.
    pub fn of(server: &ServerConfig) -> Self {
        if server.tls.is_on() { UrlScheme::Https } else { UrlScheme::Http }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            UrlScheme::Http => "http",
            UrlScheme::Https => "https",
        }
    }

    /// The URL of a host, which is a name or an IP address without brackets.
    pub fn url(self, host: &str, port: u16) -> String {
        let scheme = self.as_str();
        match host.contains(':') {
            true => format!("{scheme}://[{host}]:{port}"),
            false => format!("{scheme}://{host}:{port}"),
        }
    }
}

/// The address of a home's server, and what listens there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocatedServer {
    pub host: String,
    pub port: u16,
    pub probe: ServerProbe,
}

impl LocatedServer {
    /// The URL for a browser on this machine, if Hob listens there.
    pub fn url(&self) -> Option<String> {
        match self.probe {
            ServerProbe::Hob { scheme, .. } => Some(url(scheme, &self.host, self.port)),
            ServerProbe::NoListener | ServerProbe::OtherProgram => None,
        }
    }
}

/// Looks for the server of this home: first at the configured address, then at the addresses that its servers wrote into the
/// address file, the most recent first.
pub async fn locate(server: &ServerConfig, home: &Path) -> LocatedServer {
    let at = async |host: String, port| LocatedServer { probe: probe(&host, port).await, host, port };
    let is_elsewhere = |known: &SocketAddr| {
        let known = (reachable(&known.ip().to_string()), known.port());
        known != (reachable(&server.host), server.port)
    };
    let known = known_addresses(home).into_iter().filter(is_elsewhere);
    let known = join_all(known.map(|known| at(known.ip().to_string(), known.port())));
    let (configured, known) = tokio::join!(at(server.host.clone(), server.port), known);
    let is_hob = |found: &LocatedServer| matches!(found.probe, ServerProbe::Hob { .. });
    if is_hob(&configured) { configured } else { known.into_iter().find(is_hob).unwrap_or(configured) }
}

/// The file in which the servers of a home list their addresses, one per line, the most recent first. The id of the server that
/// wrote the line follows the address. A server that was killed leaves its line behind, so the program at each address must be
/// probed.
pub fn address_file(home: &Path) -> PathBuf {
    home.join("server.address")
}

/// The addresses in the address file.
pub fn known_addresses(home: &Path) -> Vec<SocketAddr> {
    let read = || -> io::Result<String> {
        let file = File::open(address_file(home))?;
        // A server that changes the file holds an exclusive lock for a moment.
        file.lock_shared()?;
        read_address_file(&file)
    };
    read().map(|text| addresses(&text)).unwrap_or_default()
}

/// The text of the address file, up to its maximum size.
pub fn read_address_file(file: &File) -> io::Result<String> {
    let mut text = String::new();
    file.take(MAX_FILE_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// The addresses in a text, one at the start of each line. Other lines are ignored.
fn addresses(text: &str) -> Vec<SocketAddr> {
    let address = |line: &str| line.split_whitespace().next()?.parse().ok();
    text.lines().filter_map(address).take(MAX_ADDRESSES).collect()
}

/// Finds out which program listens where a server that is bound to `host` and `port` can be reached.
pub async fn probe(host: &str, port: u16) -> ServerProbe {
    match get_health(host, port).await {
        Ok(answer) => answer.recognise(),
        Err(NoAnswer::NoListener) => ServerProbe::NoListener,
        Err(NoAnswer::Unusable) => ServerProbe::OtherProgram,
    }
}

/// How many calls the Hob server at this address could not record; `None` if it records all calls or does not answer.
pub async fn unrecorded_calls(host: &str, port: u16) -> Option<u64> {
    let answer = get_health(host, port).await.ok()?;
    let mut warnings = answer.headers.get_all("x-hob-warning").iter();
    warnings.find_map(|warning| warning.to_str().ok()?.strip_prefix("calls-not-recorded=")?.parse().ok())
}

/// Where a server that is bound to `host` can be reached from here.
pub fn reachable(host: &str) -> String {
    match host.parse() {
        Ok(IpAddr::V4(ip)) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.to_string(),
        Ok(IpAddr::V6(ip)) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.to_string(),
        _ => host.to_owned(),
    }
}

/// The URL of the server for a browser on this machine.
pub fn url(scheme: UrlScheme, host: &str, port: u16) -> String {
    let host = match reachable(host) {
        host if host == "127.0.0.1" || host == "::1" => "localhost".to_owned(),
        host => host,
    };
    scheme.url(&host, port)
}

/// The head of an answer to `GET /health`.
struct HealthAnswer {
    scheme: UrlScheme,
    status: StatusCode,
    headers: HeaderMap,
}

/// Why a health request has no answer.
enum NoAnswer {
    NoListener,
    /// The listener does not answer with HTTP, or not in time.
    Unusable,
}

async fn get_health(host: &str, port: u16) -> Result<HealthAnswer, NoAnswer> {
    let host = reachable(host);
    tokio::time::timeout(PROBE_TIMEOUT, get_health_of_any(&host, port))
        .await
        .unwrap_or(Err(NoAnswer::Unusable))
}

/// Tries each address of the host until one accepts the connection.
async fn get_health_of_any(host: &str, port: u16) -> Result<HealthAnswer, NoAnswer> {
    let options = HttpClientOptions {
        proxy: ProxyUse::Never,
        // The certificate is for the name of the server, and a request to its health has no secret.
        certificates: CertificateCheck::Accept,
        ..HttpClientOptions::default()
    };
    let client = http_client(options).map_err(|_| NoAnswer::Unusable)?;
    let get = async |scheme: UrlScheme, address: SocketAddr| match client
        .get(format!("{}://{address}/health", scheme.as_str()))
        .send()
        .await
    {
        Ok(answer) => Ok(HealthAnswer { scheme, status: answer.status(), headers: answer.headers().clone() }),
        Err(error) if error.is_connect() => Err(NoAnswer::NoListener),
        Err(_) => Err(NoAnswer::Unusable),
    };
    // A request to the IP address passes the server's check of the Host header for any host name.
    for address in lookup_host((host, port)).await.map_err(|_| NoAnswer::NoListener)? {
        match get(UrlScheme::Http, address).await {
            Ok(answer) if answer.requires_https() => {
                return get(UrlScheme::Https, address).await.map_err(|_| NoAnswer::Unusable);
            }
            Ok(answer) => return Ok(answer),
            Err(NoAnswer::NoListener) => {}
            Err(unusable) => return Err(unusable),
        }
    }
    Err(NoAnswer::NoListener)
}

impl HealthAnswer {
    /// Hob names itself in the header `Server`.
    fn recognise(&self) -> ServerProbe {
        match self.is_hob() {
            true => ServerProbe::Hob { health: self.status.as_u16(), scheme: self.scheme },
            false => ServerProbe::OtherProgram,
        }
    }

    fn is_hob(&self) -> bool {
        let server = self.headers.get("server").and_then(|value| value.to_str().ok());
        server.is_some_and(|server| server.starts_with("hob/"))
    }

    /// Hob answers its health check with 400 only if it speaks HTTPS and the request was plain HTTP.
    fn requires_https(&self) -> bool {
        self.scheme == UrlScheme::Http && self.status == StatusCode::BAD_REQUEST && self.is_hob()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, headers: &[(&'static str, &'static str)]) -> HealthAnswer {
        let headers = headers.iter().map(|(name, value)| {
            (name.parse().expect("a header name"), value.parse().expect("a header value"))
        });
        let scheme = UrlScheme::Http;
        HealthAnswer {
            scheme,
            status: StatusCode::from_u16(status).expect("a status"),
            headers: headers.collect(),
        }
    }

    #[test]
    fn hob_is_recognised_by_its_server_header() {
        let unhealthy = answer(503, &[("Server", "hob/0.1.0")]);
        assert_eq!(unhealthy.recognise(), ServerProbe::Hob { health: 503, scheme: UrlScheme::Http });
        assert!(!unhealthy.requires_https());
        assert!(answer(400, &[("Server", "hob/0.1.0")]).requires_https());
        assert!(!answer(400, &[("Server", "nginx")]).requires_https());
        for other in [&[("server", "uvicorn"), ("x-server", "hob/0.1.0")][..], &[]] {
            assert_eq!(answer(200, other).recognise(), ServerProbe::OtherProgram, "{other:?}");
        }
    }

    #[tokio::test]
    async fn a_listener_that_is_not_http_is_another_program() {
        // No other program gets it after the listener is gone.
        let port = hob_testkit::free_port();
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.expect("a port");
        let is_asked = std::cell::Cell::new(false);
        let answering = async {
            let (mut connection, _) = listener.accept().await.expect("a connection");
            is_asked.set(true);
            // A client that was too slow has gone.
            let _ = tokio::io::AsyncWriteExt::write_all(&mut connection, b"SSH-2.0-OpenSSH\r\n").await;
        };
        // On a busy machine the time may be up before there is a connection.
        let asking = async {
            loop {
                let found = probe("127.0.0.1", port).await;
                if is_asked.get() || found != ServerProbe::OtherProgram {
                    return found;
                }
            }
        };
        let (found, ()) = tokio::join!(asking, answering);
        assert_eq!(found, ServerProbe::OtherProgram);
        drop(listener);
        assert_eq!(probe("127.0.0.1", port).await, ServerProbe::NoListener);
    }

    #[test]
    fn a_server_on_all_addresses_is_reached_on_the_loopback_address() {
        assert_eq!(reachable("0.0.0.0"), "127.0.0.1");
        assert_eq!(reachable("::"), "::1");
        assert_eq!(reachable("box.lan"), "box.lan");
    }

    #[test]
    fn a_url_has_brackets_around_colons() {
        assert_eq!(UrlScheme::Http.url("0.0.0.0", 8000), "http://0.0.0.0:8000");
        assert_eq!(UrlScheme::Https.url("::1", 443), "https://[::1]:443");
    }

    #[test]
    fn the_url_of_a_server_works_in_a_browser() {
        for host in ["0.0.0.0", "127.0.0.1", "::"] {
            assert_eq!(url(UrlScheme::Http, host, 8000), "http://localhost:8000");
        }
        assert_eq!(url(UrlScheme::Http, "fd00::1", 80), "http://[fd00::1]:80");
        assert_eq!(url(UrlScheme::Https, "box.lan", 443), "https://box.lan:443");
    }
}

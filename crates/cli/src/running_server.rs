//! Who listens at the server's address: a Hob that runs, somebody else, or nobody. Asks as any stranger on this machine could.

use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::future::join_all;
use hob_config::ServerConfig;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// How long whoever listens there may take to say who it is, and how much of it is read.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);
const MAX_HEAD_BYTES: u64 = 8 << 10;

/// How many servers of one home are remembered: some of them may have been killed.
pub const MAX_ADDRESSES: usize = 8;

/// Bytes that hold as many addresses.
const MAX_FILE_BYTES: u64 = 1 << 10;

/// Who was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerProbe {
    /// Nobody takes a connection.
    NoListener,
    /// Somebody does, who is not Hob or does not say so in time.
    OtherProgram,
    Hob {
        /// The status it answers when asked for its health: 200, or 503 when its engine does not answer.
        health: u16,
    },
}

/// Where a server of this home is, or would be, and who is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocatedServer {
    pub host: String,
    pub port: u16,
    pub probe: ServerProbe,
}

/// Looks for the server of this home: where the configuration has it, and where those that were started said they would be,
/// the last one first.
pub async fn locate(server: &ServerConfig, home: &Path) -> LocatedServer {
    let at = async |host: String, port| LocatedServer { probe: probe(&host, port).await, host, port };
    let is_elsewhere = |known: &SocketAddr| {
        let known = (reachable(&known.ip().to_string()), known.port());
        known != (reachable(&server.host), server.port)
    };
    let known = known_addresses(home).into_iter().filter(is_elsewhere);
    let known = join_all(known.map(|known| at(known.ip().to_string(), known.port())));
    let (usual, known) = tokio::join!(at(server.host.clone(), server.port), known);
    let is_hob = |found: &LocatedServer| matches!(found.probe, ServerProbe::Hob { .. });
    if is_hob(&usual) { usual } else { known.into_iter().find(is_hob).unwrap_or(usual) }
}

/// The file in which the servers of a home say where they listen, one in a line, the last one first. One that was killed leaves
/// its line behind, so each is a hint: the address has to be asked who is there.
pub fn address_file(home: &Path) -> PathBuf {
    home.join("server.address")
}

/// What the servers of this home wrote there.
pub fn known_addresses(home: &Path) -> Vec<SocketAddr> {
    let read = || -> io::Result<String> {
        let file = File::open(address_file(home))?;
        // Whoever changes it holds it for a moment.
        file.lock_shared()?;
        read_address_file(&file)
    };
    read().map(|text| addresses(&text)).unwrap_or_default()
}

/// The text of the note, as far as it can be one.
pub fn read_address_file(file: &File) -> io::Result<String> {
    let mut text = String::new();
    file.take(MAX_FILE_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// The addresses in a note. A line that is none says nothing.
pub fn addresses(text: &str) -> Vec<SocketAddr> {
    text.lines().filter_map(|line| line.trim().parse().ok()).take(MAX_ADDRESSES).collect()
}

/// Looks who listens where a server that is bound to `host` and `port` can be reached.
pub async fn probe(host: &str, port: u16) -> ServerProbe {
    let host = reachable(host);
    let asking = async {
        let Ok(socket) = TcpStream::connect((host.as_str(), port)).await else {
            return ServerProbe::NoListener;
        };
        match ask(socket).await {
            Ok(head) => recognise(&head),
            Err(_) => ServerProbe::OtherProgram,
        }
    };
    tokio::time::timeout(PROBE_TIMEOUT, asking).await.unwrap_or(ServerProbe::OtherProgram)
}

/// How many calls the Hob that listens there could not record; `None` when it records them all, or nobody says.
pub async fn unrecorded_calls(host: &str, port: u16) -> Option<u64> {
    let asking = async { ask(TcpStream::connect((reachable(host).as_str(), port)).await?).await };
    let head = tokio::time::timeout(PROBE_TIMEOUT, asking).await.ok()?.ok()?;
    let warnings = head.lines().filter_map(|line| line.split_once(':'));
    let mut warnings = warnings.filter(|(name, _)| name.eq_ignore_ascii_case("x-hob-warning"));
    warnings.find_map(|(_, warning)| warning.trim().strip_prefix("calls-not-recorded=")?.parse().ok())
}

/// Where a server that is bound to `host` can be reached from here.
pub fn reachable(host: &str) -> String {
    match host.parse() {
        Ok(IpAddr::V4(ip)) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.to_string(),
        Ok(IpAddr::V6(ip)) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.to_string(),
        _ => host.to_owned(),
    }
}

/// What a browser on this machine is to be pointed at.
pub fn url(host: &str, port: u16) -> String {
    let host = match reachable(host) {
        host if host == "127.0.0.1" || host == "::1" => "localhost".to_owned(),
        host if host.contains(':') => format!("[{host}]"),
        host => host,
    };
    format!("http://{host}:{port}")
}

/// The head of the answer to a question for its health.
async fn ask(mut socket: TcpStream) -> io::Result<String> {
    let peer: SocketAddr = socket.peer_addr()?;
    let request = format!("GET /health HTTP/1.1\r\nhost: {peer}\r\nconnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).await?;
    // The head is enough, and not everybody closes the connection behind the body.
    let mut lines = BufReader::new(socket.take(MAX_HEAD_BYTES)).lines();
    let mut head = String::new();
    while let Some(line) = lines.next_line().await?.filter(|line| !line.is_empty()) {
        head += &line;
        head.push('\n');
    }
    Ok(head)
}

fn recognise(head: &str) -> ServerProbe {
    let names_hob = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .any(|(name, value)| name.eq_ignore_ascii_case("server") && value.trim_start().starts_with("hob/"));
    match head.split(' ').nth(1).and_then(|status| status.parse().ok()) {
        Some(health) if names_hob => ServerProbe::Hob { health },
        _ => ServerProbe::OtherProgram,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hob_is_known_by_its_name() {
        let sick = "HTTP/1.1 503 Service Unavailable\nServer: hob/0.1.0\n";
        assert_eq!(recognise(sick), ServerProbe::Hob { health: 503 });
        for stranger in ["HTTP/1.1 200 OK\nserver: uvicorn\nx-server: hob/0.1.0\n", "server: hob/0.1.0\n", ""]
        {
            assert_eq!(recognise(stranger), ServerProbe::OtherProgram, "{stranger}");
        }
    }

    #[test]
    fn a_server_on_all_addresses_is_reached_on_the_inner_one() {
        assert_eq!(reachable("0.0.0.0"), "127.0.0.1");
        assert_eq!(reachable("::"), "::1");
        assert_eq!(reachable("box.lan"), "box.lan");
    }

    #[test]
    fn a_server_is_shown_as_a_browser_finds_it() {
        for host in ["0.0.0.0", "127.0.0.1", "::"] {
            assert_eq!(url(host, 8000), "http://localhost:8000");
        }
        assert_eq!(url("fd00::1", 80), "http://[fd00::1]:80");
        assert_eq!(url("box.lan", 80), "http://box.lan:80");
    }
}

//! Who listens at the server's address: a Hob that runs, somebody else, or nobody. Asks as any stranger on this machine could.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// How long whoever listens there may take to say who it is, and how much of it is read.
const PATIENCE: Duration = Duration::from_secs(3);
const ENOUGH: u64 = 8 << 10;

/// Who was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Neighbour {
    /// Nobody takes a connection.
    Nobody,
    /// Somebody does, who is not Hob or does not say so in time.
    Stranger,
    Hob {
        /// The status it answers when asked for its health: 200, or 503 when its engine does not answer.
        health: u16,
    },
}

/// Looks who listens where a server that is bound to `host` and `port` can be reached.
pub async fn look(host: &str, port: u16) -> Neighbour {
    let host = reachable(host);
    let asking = async {
        let Ok(socket) = TcpStream::connect((host.as_str(), port)).await else {
            return Neighbour::Nobody;
        };
        match ask(socket).await {
            Ok(head) => recognise(&head),
            Err(_) => Neighbour::Stranger,
        }
    };
    tokio::time::timeout(PATIENCE, asking).await.unwrap_or(Neighbour::Stranger)
}

/// Where a server that is bound to `host` can be reached from here.
pub fn reachable(host: &str) -> String {
    match host.parse() {
        Ok(IpAddr::V4(ip)) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.to_string(),
        Ok(IpAddr::V6(ip)) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.to_string(),
        _ => host.to_owned(),
    }
}

/// The head of the answer to a question for its health.
async fn ask(mut socket: TcpStream) -> io::Result<String> {
    let peer: SocketAddr = socket.peer_addr()?;
    let request = format!("GET /health HTTP/1.1\r\nhost: {peer}\r\nconnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).await?;
    // The head is enough, and not everybody closes the connection behind the body.
    let mut lines = BufReader::new(socket.take(ENOUGH)).lines();
    let mut head = String::new();
    while let Some(line) = lines.next_line().await?.filter(|line| !line.is_empty()) {
        head += &line;
        head.push('\n');
    }
    Ok(head)
}

fn recognise(head: &str) -> Neighbour {
    let names_hob = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .any(|(name, value)| name.eq_ignore_ascii_case("server") && value.trim_start().starts_with("hob/"));
    match head.split(' ').nth(1).and_then(|status| status.parse().ok()) {
        Some(health) if names_hob => Neighbour::Hob { health },
        _ => Neighbour::Stranger,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hob_is_known_by_its_name() {
        let sick = "HTTP/1.1 503 Service Unavailable\nServer: hob/0.1.0\n";
        assert_eq!(recognise(sick), Neighbour::Hob { health: 503 });
        for stranger in ["HTTP/1.1 200 OK\nserver: uvicorn\nx-server: hob/0.1.0\n", "server: hob/0.1.0\n", ""]
        {
            assert_eq!(recognise(stranger), Neighbour::Stranger, "{stranger}");
        }
    }

    #[test]
    fn a_server_on_all_addresses_is_reached_on_the_inner_one() {
        assert_eq!(reachable("0.0.0.0"), "127.0.0.1");
        assert_eq!(reachable("::"), "::1");
        assert_eq!(reachable("box.lan"), "box.lan");
    }
}

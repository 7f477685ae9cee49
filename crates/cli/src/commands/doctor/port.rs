//! The port of the server: free, taken by a Hob that runs, or taken by something else.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use hob_config::ServerConfig;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::report::{Check, Status};

const NAME: &str = "port";

/// How long whoever listens there may take to say who it is, and how much of it is read.
const PATIENCE: Duration = Duration::from_secs(3);
const ENOUGH: u64 = 8 << 10;

pub async fn check(config: &ServerConfig) -> Check {
    let (host, port) = (config.host.as_str(), config.port);
    match TcpListener::bind((host, port)).await {
        Ok(_) => Check::new(NAME, Status::Good, format!("{port} is free for 'hob serve'")),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            if is_hob(reachable(host), port).await {
                Check::new(NAME, Status::Good, format!("Hob runs on {port} already"))
            } else {
                Check::new(NAME, Status::Warning, format!("something else listens on {port}"))
                    .advise("Stop it, or choose another port: 'hob serve --port 8001', or [server] port")
            }
        }
        Err(error) => Check::new(NAME, Status::Warning, format!("cannot listen on {host}:{port}: {error}"))
            .advise("See [server] host and port"),
    }
}

/// Where a server that is bound to `host` can be reached from here.
fn reachable(host: &str) -> String {
    match host.parse() {
        Ok(IpAddr::V4(ip)) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.to_string(),
        Ok(IpAddr::V6(ip)) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.to_string(),
        _ => host.to_owned(),
    }
}

/// Whether whoever listens there calls itself Hob.
async fn is_hob(host: String, port: u16) -> bool {
    let asking = async {
        let mut socket = TcpStream::connect((host.as_str(), port)).await?;
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
        io::Result::Ok(head)
    };
    match tokio::time::timeout(PATIENCE, asking).await {
        Ok(Ok(head)) => names_hob(&head),
        Ok(Err(_)) | Err(_) => false,
    }
}

fn names_hob(head: &str) -> bool {
    head.lines()
        .filter_map(|line| line.split_once(':'))
        .any(|(name, value)| name.eq_ignore_ascii_case("server") && value.trim_start().starts_with("hob/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hob_is_known_by_its_name() {
        assert!(names_hob("HTTP/1.1 503 X\nServer: hob/0.1.0\n"));
        assert!(!names_hob("HTTP/1.1 200 OK\nserver: uvicorn\nx-server: hob/0.1.0\n"));
        assert!(!names_hob(""));
    }

    #[test]
    fn a_server_on_all_addresses_is_reached_on_the_inner_one() {
        assert_eq!(reachable("0.0.0.0"), "127.0.0.1");
        assert_eq!(reachable("::"), "::1");
        assert_eq!(reachable("box.lan"), "box.lan");
    }
}

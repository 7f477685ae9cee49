//! A proxy before a server, whose connections fail in the way that a test sets.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// What goes wrong. It applies to the connections that stand and to new ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionFault {
    /// Nothing passes, and the connections stay open.
    Hang,
    /// All connections end, and new ones too.
    Close,
    /// The client reads bytes that the server has not sent.
    Garbage,
    /// One byte after the other.
    Slow,
    /// The server sends nothing more, but still reads.
    HalfClose,
}

impl ConnectionFault {
    pub const ALL: [ConnectionFault; 5] = [
        ConnectionFault::Hang,
        ConnectionFault::Close,
        ConnectionFault::Garbage,
        ConnectionFault::Slow,
        ConnectionFault::HalfClose,
    ];
}

/// Between two bytes of a slow connection.
const PAUSE: Duration = Duration::from_millis(1);

/// The proxy. It ends with its value.
pub struct FaultyProxy {
    url: String,
    fault: watch::Sender<Option<ConnectionFault>>,
    accepting: JoinHandle<()>,
}

impl FaultyProxy {
    /// Before the server of a URL such as `postgres://user:password@127.0.0.1:5432/name`. It passes everything on until a fault is set.
    pub async fn start(url: &str) -> Self {
        let after = url.find('@').map_or_else(|| url.find("://").map_or(0, |at| at + 3), |at| at + 1);
        let end = url[after..].find('/').map_or(url.len(), |at| after + at);
        let server: SocketAddr = url[after..end].parse().expect("an address with a port");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let own = listener.local_addr().expect("a bound socket");
        let fault = watch::Sender::new(None);
        let accepting = tokio::spawn(accept(listener, server, fault.clone()));
        FaultyProxy { url: format!("{}{own}{}", &url[..after], &url[end..]), fault, accepting }
    }

    /// The same URL with the address of the proxy.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Sets the fault, or ends it. Connections that a fault has broken stay broken.
    pub fn set(&self, fault: Option<ConnectionFault>) {
        self.fault.send_replace(fault);
    }
}

impl Drop for FaultyProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, server: SocketAddr, fault: watch::Sender<Option<ConnectionFault>>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        connections.spawn(pass(client, server, fault.subscribe()));
        while connections.try_join_next().is_some() {}
    }
}

async fn pass(client: TcpStream, server: SocketAddr, fault: watch::Receiver<Option<ConnectionFault>>) {
    if *fault.borrow() == Some(ConnectionFault::Close) {
        return;
    }
    let Ok(server) = TcpStream::connect(server).await else { return };
    let (client_in, client_out) = client.into_split();
    let (server_in, server_out) = server.into_split();
    // Both directions end together, as a broken connection does.
    tokio::select! {
        () = copy(client_in, server_out, fault.clone(), Direction::ToServer) => {}
        () = copy(server_in, client_out, fault.clone(), Direction::ToClient) => {}
        () = closed(fault) => {}
    }
}

/// Returns when connections must end.
async fn closed(mut fault: watch::Receiver<Option<ConnectionFault>>) {
    let is_closing = |fault: &Option<ConnectionFault>| *fault == Some(ConnectionFault::Close);
    if fault.wait_for(is_closing).await.is_err() {
        std::future::pending::<()>().await;
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    ToServer,
    ToClient,
}

async fn copy(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut fault: watch::Receiver<Option<ConnectionFault>>,
    direction: Direction,
) {
    let mut buffer = vec![0; 16 << 10];
    loop {
        let count = match from.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(count) => count,
        };
        let is_passing = |fault: &Option<ConnectionFault>| *fault != Some(ConnectionFault::Hang);
        let Ok(now) = fault.wait_for(is_passing).await.map(|fault| *fault) else { return };
        let written = match (now, direction) {
            (Some(ConnectionFault::Garbage), Direction::ToClient) => {
                buffer[..count].fill(0xA5);
                to.write_all(&buffer[..count]).await
            }
            (Some(ConnectionFault::HalfClose), Direction::ToClient) => {
                let ended = to.shutdown().await;
                // What the server sends is read and lost, until the client leaves.
                while from.read(&mut buffer).await.is_ok_and(|count| count > 0) {}
                ended
            }
            (Some(ConnectionFault::Slow), _) => write_slowly(&mut to, &buffer[..count]).await,
            _ => to.write_all(&buffer[..count]).await,
        };
        if written.is_err() {
            return;
        }
    }
}

async fn write_slowly(to: &mut OwnedWriteHalf, bytes: &[u8]) -> std::io::Result<()> {
    for byte in bytes {
        to.write_all(&[*byte]).await?;
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_server::{FakeServer, Reply};

    /// What a client reads that waits long enough for every good answer.
    async fn read_all(proxy: &FaultyProxy) -> String {
        read(proxy, Duration::from_secs(60)).await
    }

    /// What a client of the proxy reads until the end of its connection or of its patience.
    async fn read(proxy: &FaultyProxy, patience: Duration) -> String {
        let address = proxy.url().trim_start_matches("http://").trim_end_matches('/').to_owned();
        let mut socket = TcpStream::connect(address).await.expect("it listens");
        let request = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n";
        let mut text = Vec::new();
        let exchange = async {
            if socket.write_all(request).await.is_ok() {
                while socket.read_buf(&mut text).await.is_ok_and(|count| count > 0) {
                    if text.ends_with(b"0\r\n\r\n") {
                        return;
                    }
                }
            }
        };
        let _ = tokio::time::timeout(patience, exchange).await;
        String::from_utf8_lossy(&text).into_owned()
    }

    #[tokio::test]
    async fn every_fault_breaks_a_connection_and_ends() {
        let server = FakeServer::replying(Reply::json(200, "good")).await;
        let proxy = FaultyProxy::start(&format!("{}/", server.url())).await;
        for fault in ConnectionFault::ALL {
            proxy.set(Some(fault));
            match fault {
                ConnectionFault::Slow => assert!(read_all(&proxy).await.contains("good")),
                _ => {
                    let said = read(&proxy, Duration::from_secs(3)).await;
                    assert!(!said.contains("good"), "{fault:?}: {said}");
                }
            }
            proxy.set(None);
            assert!(read_all(&proxy).await.contains("good"), "after {fault:?}");
        }
    }
}

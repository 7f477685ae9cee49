//! An HTTP server that closes each kept-alive connection when its second request comes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// When the server closes the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closing {
    /// Before it reads the second request: its machine resets the connection.
    Unread,
    /// After it has read the second request, without a byte of an answer.
    Read,
    /// After the first bytes of the second answer.
    AfterBytes,
}

/// The server. It runs until the test's runtime ends.
pub struct ClosingServer {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl ClosingServer {
    /// Answers the first request of each connection with `body`.
    pub async fn start(closing: Closing, body: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let connections = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&connections);
        let answer: Arc<str> =
            format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                counter.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(serve(socket, closing, Arc::clone(&answer)));
            }
        });
        ClosingServer { address, connections }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How many connections were made so far.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

async fn serve(mut socket: TcpStream, closing: Closing, answer: Arc<str>) {
    let mut request = vec![0; 64 << 10];
    assert!(socket.read(&mut request).await.expect("a request") > 0);
    socket.write_all(answer.as_bytes()).await.expect("a reader");
    // How these end makes no difference: the connection closes after them.
    match closing {
        Closing::Unread => drop(socket.peek(&mut request).await),
        Closing::Read => drop(socket.read(&mut request).await),
        Closing::AfterBytes => {
            drop(socket.read(&mut request).await);
            drop(socket.write_all(b"HTTP/1.1 2").await);
        }
    }
}

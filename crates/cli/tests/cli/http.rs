//! Just enough of an HTTP client to talk to `hob serve`.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// An answer that is arriving.
pub struct Answer {
    socket: TcpStream,
    text: String,
}

/// Sends a chat request, as JSON.
pub async fn chat(address: &str, body: &str) -> Answer {
    chat_with(address, "connection: close", body).await
}

/// The same with another header.
pub async fn chat_with(address: &str, header: &str, body: &str) -> Answer {
    post_with(address, "/v1/chat/completions", header, body).await
}

/// Sends JSON.
pub async fn post(address: &str, path: &str, body: &str) -> Answer {
    post_with(address, path, "connection: close", body).await
}

async fn post_with(address: &str, path: &str, header: &str, body: &str) -> Answer {
    let head =
        format!("POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n{header}\r\n");
    send(address, &format!("{head}content-length: {}\r\n\r\n{body}", body.len())).await
}

pub async fn get(address: &str, path: &str) -> Answer {
    send(address, &format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n")).await
}

async fn send(address: &str, request: &str) -> Answer {
    let mut socket = TcpStream::connect(address).await.expect("the server listens");
    socket.write_all(request.as_bytes()).await.expect("the server reads");
    Answer { socket, text: String::new() }
}

impl Answer {
    /// Reads until `needle` has arrived.
    pub async fn until(&mut self, needle: &str) {
        while !self.text.contains(needle) {
            assert!(self.more().await, "the answer ended without '{needle}':\n{}", self.text);
        }
    }

    /// The complete answer, including the head.
    pub async fn all(mut self) -> String {
        while self.more().await {}
        self.text
    }

    async fn more(&mut self) -> bool {
        let mut buffer = [0; 4096];
        let count = self.socket.read(&mut buffer).await.expect("the connection holds");
        self.text += &String::from_utf8_lossy(&buffer[..count]);
        count > 0
    }
}

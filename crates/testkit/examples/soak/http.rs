//! Requests on connections of their own.

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What is sent, and what must come back.
pub struct Call {
    pub method: &'static str,
    pub path: String,
    pub content_type: &'static str,
    pub body: String,
}

impl Call {
    pub fn get(path: &str) -> Self {
        Call { method: "GET", path: path.to_owned(), content_type: "application/json", body: String::new() }
    }

    pub fn post(path: &str, body: &Value) -> Self {
        Call {
            method: "POST",
            path: path.to_owned(),
            content_type: "application/json",
            body: body.to_string(),
        }
    }

    pub fn delete(path: String) -> Self {
        Call { method: "DELETE", path, content_type: "application/json", body: String::new() }
    }

    async fn send(&self, port: u16) -> std::io::Result<TcpStream> {
        let mut socket = TcpStream::connect(("127.0.0.1", port)).await?;
        let Call { method, path, content_type, body } = self;
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        socket.write_all(request.as_bytes()).await?;
        Ok(socket)
    }

    /// The whole answer if its status is a good one, else why not.
    pub async fn answer(&self, port: u16) -> Result<String, String> {
        let exchange = async {
            let mut socket = self.send(port).await?;
            let mut bytes = Vec::new();
            socket.read_to_end(&mut bytes).await?;
            Ok::<_, std::io::Error>(String::from_utf8_lossy(&bytes).into_owned())
        };
        match exchange.await {
            Ok(text) if text.starts_with("HTTP/1.1 2") => Ok(text),
            Ok(text) => {
                Err(format!("{} {}: {}", self.method, self.path, text.chars().take(300).collect::<String>()))
            }
            Err(error) => Err(format!("{} {}: {error}", self.method, self.path)),
        }
    }

    /// Reads the beginning of the answer, and leaves.
    pub async fn leave_early(&self, port: u16) -> Result<(), String> {
        let exchange = async {
            let mut socket = self.send(port).await?;
            socket.read_exact(&mut [0; 16]).await
        };
        exchange.await.map(drop).map_err(|error| format!("{} {}: {error}", self.method, self.path))
    }
}

/// The text between this name and the next quotation mark, such as an id.
pub fn field(answer: &str, name: &str) -> Option<String> {
    let start = format!("\"{name}\":\"");
    let (_, rest) = answer.split_once(&start)?;
    rest.split_once('"').map(|(value, _)| value.to_owned())
}

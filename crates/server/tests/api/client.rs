//! Helpers for clients: requests, answers without random parts, and raw connections.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{TestServer, WAIT_LIMIT};

/// A question to the model `m`, with `fields` added to it.
pub fn asking(fields: Value) -> Value {
    let mut body = json!({ "model": "m", "messages": [{ "role": "user", "content": "hi" }] });
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

/// One chunk of such an engine with this delta.
pub fn chunk(delta: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":null}}]}}\n\n")
}

/// The body of a complete answer, with `id` and `created` checked and replaced by fixed values.
pub async fn completion(response: reqwest::Response) -> Value {
    assert_eq!(response.headers()["content-type"], "application/json");
    let mut body: Value = response.json().await.unwrap();
    check_identity(&body);
    body["id"] = "[id]".into();
    body["created"] = 0.into();
    body
}

/// The text of a stream, in the same way. All of its chunks have the same id.
pub async fn events(response: reqwest::Response) -> String {
    let text = response.text().await.unwrap();
    let first = text.split("\n\n").next().and_then(|event| event.strip_prefix("data: ")).unwrap();
    let first: Value = serde_json::from_str(first).unwrap();
    check_identity(&first);
    text.replace(first["id"].as_str().unwrap(), "[id]").replace(&first["created"].to_string(), "0")
}

fn check_identity(body: &Value) {
    let id = body["id"].as_str().unwrap();
    let suffix = id.strip_prefix("chatcmpl-").unwrap();
    assert!(suffix.len() == 24 && suffix.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    assert!(body["created"].as_u64().unwrap().abs_diff(now) < 60, "{}", body["created"]);
}

/// A raw TCP connection to the server.
pub struct RawConnection(TcpStream);

impl RawConnection {
    pub async fn connect(server: &TestServer) -> Self {
        Self::to(server.address).await
    }

    pub async fn to(address: SocketAddr) -> Self {
        RawConnection(TcpStream::connect(address).await.unwrap())
    }

    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).await.unwrap();
    }

    /// Sends as much as the server accepts before it closes.
    pub async fn send_what_is_taken(&mut self, bytes: &[u8]) {
        let _ = self.0.write_all(bytes).await;
    }

    /// Sends a complete HTTP/1.1 chat request.
    pub async fn send_chat(&mut self, body: &Value) {
        self.send(post_chat("HTTP/1.1", body)).await;
    }

    /// Closes the sending side only.
    pub async fn half_close(&mut self) {
        self.0.shutdown().await.unwrap();
    }

    /// Everything until the server closes. A reset connection counts as closed.
    pub async fn rest(&mut self) -> String {
        let mut bytes = Vec::new();
        let ended = tokio::time::timeout(WAIT_LIMIT, self.0.read_to_end(&mut bytes)).await;
        assert!(ended.is_ok(), "the server never closed; so far {:?}", String::from_utf8_lossy(&bytes));
        String::from_utf8(bytes).unwrap()
    }

    /// What the server has sent so far, if anything.
    pub async fn ready(&mut self) -> Option<String> {
        let mut bytes = vec![0; 16 << 10];
        let read = self.0.try_read(&mut bytes).ok().filter(|read| *read > 0)?;
        Some(String::from_utf8_lossy(&bytes[..read]).into_owned())
    }

    /// Reads until `mark` has arrived, and returns everything.
    pub async fn until(&mut self, mark: &str) -> String {
        let text = self.until_or_closed(mark).await;
        assert!(text.contains(mark), "closed before {mark:?}; so far {text:?}");
        text
    }

    /// Reads until `mark` has arrived or the server closes, and returns everything. A reset connection counts as closed.
    pub async fn until_or_closed(&mut self, mark: &str) -> String {
        let mut bytes = Vec::new();
        let reading = async {
            while !String::from_utf8_lossy(&bytes).contains(mark) {
                if !matches!(self.0.read_buf(&mut bytes).await, Ok(1..)) {
                    return;
                }
            }
        };
        tokio::time::timeout(WAIT_LIMIT, reading).await.unwrap_or_else(|_| panic!("{mark:?} never came"));
        String::from_utf8(bytes).unwrap()
    }
}

/// A chat request as bytes.
pub fn post_chat(version: &str, body: &Value) -> String {
    let body = body.to_string();
    let length = body.len();
    format!(
        "POST /v1/chat/completions {version}\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
}

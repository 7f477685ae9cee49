//! The load: so many connections, each of which asks, reads the whole answer, and asks again.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::gateway::Gateway;

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    Whole,
    /// All events at once.
    Streamed,
    /// One event after the other, as a real engine sends them.
    Paced,
}

impl Ask {
    fn model(self) -> &'static str {
        match self {
            Ask::Whole | Ask::Streamed => super::stand_in::MODEL,
            Ask::Paced => super::stand_in::PACED_MODEL,
        }
    }
}

/// The API in whose form it is asked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Api {
    Chat,
    Completions,
    Responses,
    Messages,
    Ollama,
}

impl Api {
    pub const ALL: [Api; 5] = [Api::Chat, Api::Completions, Api::Responses, Api::Messages, Api::Ollama];

    pub fn name(self) -> &'static str {
        match self {
            Api::Chat => "chat",
            Api::Completions => "completions",
            Api::Responses => "responses",
            Api::Messages => "messages",
            Api::Ollama => "ollama",
        }
    }

    fn path(self) -> &'static str {
        match self {
            Api::Chat => "/v1/chat/completions",
            Api::Completions => "/v1/completions",
            Api::Responses => "/v1/responses",
            Api::Messages => "/v1/messages",
            Api::Ollama => "/api/chat",
        }
    }

    /// What a stream that is complete has at its end.
    fn end(self) -> &'static [u8] {
        match self {
            Api::Chat | Api::Completions => b"data: [DONE]",
            Api::Responses => b"response.completed",
            Api::Messages => b"message_stop",
            Api::Ollama => b"\"done\":true",
        }
    }

    fn body(self, model: &str, stream: bool) -> String {
        const SYSTEM: &str = "You are a helpful assistant.";
        const USER: &str = "Why is the sky blue? Answer in one short paragraph.";
        let user = format!(r#"{{"role":"user","content":"{USER}"}}"#);
        let messages = format!(r#"[{{"role":"system","content":"{SYSTEM}"}},{user}]"#);
        match self {
            Api::Chat => format!(
                r#"{{"model":"{model}","messages":{messages},"temperature":0.7,"max_tokens":256,"stream":{stream}}}"#
            ),
            Api::Completions => format!(
                r#"{{"model":"{model}","prompt":"{SYSTEM}\n\n{USER}","temperature":0.7,"max_tokens":256,"stream":{stream}}}"#
            ),
            Api::Responses => format!(
                r#"{{"model":"{model}","input":{messages},"temperature":0.7,"max_output_tokens":256,"store":false,"stream":{stream}}}"#
            ),
            Api::Messages => format!(
                r#"{{"model":"{model}","system":"{SYSTEM}","messages":[{user}],"temperature":0.7,"max_tokens":256,"stream":{stream}}}"#
            ),
            Api::Ollama => format!(
                r#"{{"model":"{model}","messages":{messages},"options":{{"temperature":0.7,"num_predict":256}},"stream":{stream}}}"#
            ),
        }
    }
}

/// What came of it.
pub struct Outcome {
    pub requests: usize,
    pub time: Duration,
    /// Until the whole answer was there, sorted.
    pub latencies: Vec<Duration>,
    /// Until the first word of it was there, sorted.
    pub first_words: Vec<Duration>,
}

impl Outcome {
    pub fn per_second(&self) -> f64 {
        self.requests as f64 / self.time.as_secs_f64()
    }
}

/// The value below which `share` of all lie.
pub fn percentile(sorted: &[Duration], share: f64) -> Duration {
    let at = (sorted.len().saturating_sub(1)) as f64 * share;
    sorted.get(at as usize).copied().unwrap_or_default()
}

/// Each request names the engine for Portkey; the others ignore it.
static ENGINE: OnceLock<u16> = OnceLock::new();

/// All requests from now on are meant for the engine at this port.
pub fn meant_for(engine: u16) {
    let _ = ENGINE.set(engine);
}

pub fn request(gateway: &Gateway, api: Api, model: &str, ask: Ask) -> Vec<u8> {
    let body = api.body(model, ask != Ask::Whole);
    let Gateway { port, key, .. } = gateway;
    format!(
        "POST {} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\nauthorization: Bearer {key}\r\nx-portkey-provider: openai\r\nx-portkey-custom-host: http://127.0.0.1:{}/v1\r\ncontent-length: {}\r\n\r\n{body}",
        api.path(),
        ENGINE.get().copied().unwrap_or_default(),
        body.len()
    )
    .into_bytes()
}

/// Asks with `connections` at once for `time`.
pub async fn load(gateway: &Gateway, api: Api, ask: Ask, connections: usize, time: Duration) -> Outcome {
    let request: std::sync::Arc<[u8]> = request(gateway, api, ask.model(), ask).into();
    let port = gateway.port;
    let began = Instant::now();
    let until = began + time;
    let workers: Vec<_> = (0..connections)
        .map(|_| {
            let request = std::sync::Arc::clone(&request);
            tokio::spawn(async move {
                let mut connection = Connection::open(port).await;
                let mut times = Vec::new();
                while Instant::now() < until {
                    times.push(connection.ask(&request, api, ask).await);
                }
                times
            })
        })
        .collect();
    let mut outcome =
        Outcome { requests: 0, time: Duration::ZERO, latencies: Vec::new(), first_words: Vec::new() };
    for worker in workers {
        for (whole, first) in worker.await.expect("a worker that does not panic") {
            outcome.latencies.push(whole);
            outcome.first_words.push(first);
        }
    }
    outcome.time = began.elapsed();
    outcome.requests = outcome.latencies.len();
    outcome.latencies.sort_unstable();
    outcome.first_words.sort_unstable();
    outcome
}

/// One connection that is kept.
pub struct Connection {
    socket: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub async fn open(port: u16) -> Self {
        let socket = TcpStream::connect(("127.0.0.1", port)).await.expect("the gateway takes connections");
        socket.set_nodelay(true).expect("no delay");
        Connection { socket, buffer: Vec::with_capacity(32 << 10) }
    }

    /// Sends a request and reads its answer: how long until its end, and until its first word. A wrong answer ends the bench.
    async fn ask(&mut self, request: &[u8], api: Api, ask: Ask) -> (Duration, Duration) {
        let began = Instant::now();
        self.send(request).await;
        let mut first = None;
        loop {
            self.read().await;
            if first.is_none() && contains(&self.buffer, b"word ") {
                first = Some(began.elapsed());
            }
            if is_whole(&self.buffer) {
                break;
            }
        }
        let whole = began.elapsed();
        let good = self.buffer.starts_with(b"HTTP/1.1 200")
            && (ask == Ask::Whole || contains(&self.buffer, api.end()));
        assert!(good, "not a good answer: {}", String::from_utf8_lossy(&self.buffer));
        (whole, first.expect("an answer has words"))
    }

    /// Sends a request and reads its answer, which must be a good one: how long that took.
    pub async fn fetch(&mut self, request: &[u8]) -> Duration {
        let began = Instant::now();
        self.send(request).await;
        while !is_whole(&self.buffer) {
            self.read().await;
        }
        let took = began.elapsed();
        let good = self.buffer.starts_with(b"HTTP/1.1 200");
        assert!(good, "not a good answer: {}", String::from_utf8_lossy(&self.buffer));
        took
    }

    pub async fn send(&mut self, request: &[u8]) {
        self.buffer.clear();
        self.socket.write_all(request).await.expect("the gateway reads");
    }

    pub async fn read(&mut self) {
        let read = self.socket.read_buf(&mut self.buffer).await.expect("the gateway answers");
        assert!(read > 0, "the gateway hung up after: {}", String::from_utf8_lossy(&self.buffer));
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(text, part).is_some()
}

/// Whether the buffer holds an answer to its end. There is never more than one in it.
fn is_whole(buffer: &[u8]) -> bool {
    let Some(head) = memchr::memmem::find(buffer, b"\r\n\r\n") else { return false };
    let lower = buffer[..head].to_ascii_lowercase();
    match memchr::memmem::find(&lower, b"content-length:") {
        Some(at) => {
            let rest = &lower[at + 15..];
            let digits =
                rest.iter().skip_while(|byte| **byte == b' ').take_while(|byte| byte.is_ascii_digit());
            let length = digits.fold(0, |sum, digit| sum * 10 + usize::from(digit - b'0'));
            buffer.len() >= head + 4 + length
        }
        None => buffer.ends_with(b"\r\n0\r\n\r\n"),
    }
}

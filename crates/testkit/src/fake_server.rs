//! An HTTP server on a real socket that answers as a test sets it, well or badly.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::Transcript;
use crate::free_port::server_port;

/// A request as it came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    pub method: String,
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Recorded {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// What comes after the last packet of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// The answer is complete.
    Proper,
    /// The connection is closed in the middle of the answer.
    Cut,
    /// Nothing more comes, and the connection stays open until the client hangs up.
    Silence,
}

/// A point at which answers wait until the test continues them.
#[derive(Debug, Clone)]
pub struct Hold(watch::Sender<bool>);

impl Hold {
    pub fn new() -> Self {
        Hold(watch::Sender::new(false))
    }

    /// Continues every answer that waits here now or later.
    pub fn release(&self) {
        self.0.send_replace(true);
    }

    async fn released(&self) {
        // The sender lives as long as `self`, so the wait ends only with the release.
        let _ = self.0.subscribe().wait_for(|released| *released).await;
    }
}

impl Default for Hold {
    fn default() -> Self {
        Self::new()
    }
}

/// How one request is answered.
#[derive(Debug, Clone)]
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    packets: Vec<Vec<u8>>,
    /// Whether the head goes out at all.
    silent_from_start: bool,
    /// Time between packets.
    pause: Duration,
    /// What follows the packets once the test lets it.
    held: Option<(Hold, Vec<u8>)>,
    ending: Ending,
}

impl Reply {
    pub fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Reply {
            status,
            headers: vec![("content-type".into(), content_type.into())],
            packets: vec![body.into()],
            silent_from_start: false,
            pause: Duration::ZERO,
            held: None,
            ending: Ending::Proper,
        }
    }

    pub fn json(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self::new(status, "application/json", body)
    }

    pub fn sse(body: impl Into<Vec<u8>>) -> Self {
        Self::new(200, "text/event-stream", body)
    }

    pub fn ndjson(body: impl Into<Vec<u8>>) -> Self {
        Self::new(200, "application/x-ndjson", body)
    }

    /// The answer a real engine gave.
    pub fn transcript(name: &str) -> Self {
        let recorded = Transcript::load(name);
        let content_type = recorded.headers.iter().find(|(name, _)| name == "content-type");
        let content_type = content_type.map_or("text/plain", |(_, value)| value.as_str());
        Self::new(recorded.status, content_type, recorded.body)
    }

    /// No answer at all: the connection is taken and nothing happens.
    pub fn silence() -> Self {
        Reply { silent_from_start: true, ..Self::json(200, "") }.then_silence()
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sends the body in pieces of `size` bytes, each in a packet of its own.
    pub fn in_packets_of(mut self, size: usize) -> Self {
        self.packets = self.packets.concat().chunks(size.max(1)).map(<[u8]>::to_vec).collect();
        self
    }

    /// Waits between packets.
    pub fn with_pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// Closes the connection where the body should have gone on.
    pub fn then_cut(mut self) -> Self {
        self.ending = Ending::Cut;
        self
    }

    /// Goes silent where the body should have gone on.
    pub fn then_silence(mut self) -> Self {
        self.ending = Ending::Silence;
        self
    }

    /// Continues with `rest` when `hold` is released.
    pub fn then_held(mut self, hold: &Hold, rest: impl Into<Vec<u8>>) -> Self {
        self.held = Some((hold.clone(), rest.into()));
        self
    }

    async fn write(&self, socket: &mut TcpStream) -> std::io::Result<()> {
        if self.silent_from_start {
            return Ok(());
        }
        let mut head = format!("HTTP/1.1 {} X\r\ntransfer-encoding: chunked\r\n", self.status);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        socket.write_all(head.as_bytes()).await?;
        for packet in &self.packets {
            write_chunk(socket, packet).await?;
            if !self.pause.is_zero() {
                tokio::time::sleep(self.pause).await;
            }
        }
        if let Some((hold, rest)) = &self.held {
            tokio::select! {
                () = hold.released() => write_chunk(socket, rest).await?,
                () = left(socket) => return Err(ErrorKind::BrokenPipe.into()),
            }
        }
        if self.ending == Ending::Proper {
            socket.write_all(b"0\r\n\r\n").await?;
        }
        Ok(())
    }
}

async fn write_chunk(socket: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    // An empty chunk would end the answer.
    if bytes.is_empty() {
        return Ok(());
    }
    let framed = [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
    socket.write_all(&framed).await?;
    socket.flush().await
}

/// Returns when the client has hung up.
async fn left(socket: &TcpStream) {
    let mut byte = [0];
    while socket.peek(&mut byte).await.is_ok_and(|count| count > 0) {
        // A client that sends its next request early is still there, and must not be asked in a busy loop.
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

pub type Script = dyn Fn(&Recorded) -> Reply + Send + Sync;

/// The server. It stops with its value.
pub struct FakeServer {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Recorded>>>,
    hang_ups: watch::Receiver<usize>,
    accepting: JoinHandle<()>,
}

impl FakeServer {
    /// Answers every request by `script`.
    pub fn start(script: impl Fn(&Recorded) -> Reply + Send + Sync + 'static) -> impl Future<Output = Self> {
        Self::start_with(Arc::new(script))
    }

    /// The same on a listener of the test's choosing.
    pub fn on(listener: TcpListener, script: impl Fn(&Recorded) -> Reply + Send + Sync + 'static) -> Self {
        Self::accept(listener, Arc::new(script))
    }

    async fn start_with(script: Arc<Script>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", server_port())).await.expect("a free port");
        Self::accept(listener, script)
    }

    /// Not generic: the server would be compiled for every script, and a fourth of the tests of the API would be copies of it.
    fn accept(listener: TcpListener, script: Arc<Script>) -> Self {
        let address = listener.local_addr().expect("a bound socket");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (hung_up, hang_ups) = watch::channel(0);
        let recorder = Arc::clone(&requests);
        let accepting = tokio::spawn(async move {
            // The connections end with the server, as those of a killed process do.
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                connections.spawn(serve(socket, Arc::clone(&script), Arc::clone(&recorder), hung_up.clone()));
                while connections.try_join_next().is_some() {}
            }
        });
        FakeServer { address, requests, hang_ups, accepting }
    }

    /// Always the same answer.
    pub async fn replying(reply: Reply) -> Self {
        Self::start(move |_| reply.clone()).await
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<Recorded> {
        lock(&self.requests).clone()
    }

    /// Forgets the requests so far, for tests that measure memory.
    pub fn forget(&self) {
        *lock(&self.requests) = Vec::new();
    }

    /// How often a client left before its answer was complete.
    pub fn hang_ups(&self) -> usize {
        *self.hang_ups.borrow()
    }

    /// Waits until clients left before their answer was complete `count` times.
    pub async fn hung_up(&self, count: usize) {
        let mut hang_ups = self.hang_ups.clone();
        hang_ups.wait_for(|seen| *seen >= count).await.expect("the server runs");
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

fn lock(requests: &Mutex<Vec<Recorded>>) -> MutexGuard<'_, Vec<Recorded>> {
    requests.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) async fn serve(
    mut socket: TcpStream,
    script: Arc<Script>,
    requests: Arc<Mutex<Vec<Recorded>>>,
    hung_up: watch::Sender<usize>,
) {
    let _ = socket.set_nodelay(true);
    let mut buffer = Vec::new();
    while let Some(request) = read_request(&mut socket, &mut buffer).await {
        let reply = script(&request);
        lock(&requests).push(request);
        let ending = reply.ending;
        let written = reply.write(&mut socket).await;
        match (written, ending) {
            (Err(_), _) => {
                hung_up.send_modify(|count| *count += 1);
                return;
            }
            (Ok(()), Ending::Proper) => {}
            (Ok(()), Ending::Cut) => return,
            (Ok(()), Ending::Silence) => {
                while read_more(&mut socket, &mut buffer).await.is_some() {}
                hung_up.send_modify(|count| *count += 1);
                return;
            }
        }
    }
}

/// The next request on the connection; `None` when the client is done.
async fn read_request(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Recorded> {
    let head_end = loop {
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        read_more(socket, buffer).await?;
    };
    let head = String::from_utf8_lossy(&buffer[..head_end]).into_owned();
    let mut lines = head.lines();
    let mut words = lines.next()?.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    while buffer.len() < head_end + length {
        read_more(socket, buffer).await?;
    }
    let body = buffer[head_end..head_end + length].to_vec();
    buffer.drain(..head_end + length);
    Some(Recorded { method, path, headers, body })
}

async fn read_more(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<()> {
    let count = socket.read_buf(buffer).await.ok()?;
    (count > 0).then_some(())
}

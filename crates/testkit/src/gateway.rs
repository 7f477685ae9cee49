//! A messaging gateway on a real socket: WebSocket and HTTP on one port, as good or as bad as a test wants it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use crate::fake_server::{self, Recorded, Reply};
use crate::free_port::server_port;

/// What the gateway says to a frame.
pub type FrameHandler = dyn Fn(&str) -> Vec<String> + Send + Sync;

/// What the gateway does without a request.
#[derive(Clone)]
pub struct GatewayScript {
    /// The first frame, where it greets.
    pub greeting: Option<String>,
    pub answer: Arc<FrameHandler>,
    /// What it says over HTTP.
    pub http: Arc<fake_server::Script>,
    /// Whether it takes connections and then reads nothing, as a machine that has lost its network does.
    pub is_deaf: bool,
}

impl Default for GatewayScript {
    /// The simple protocol: no greeting, no answers to frames, accepts every message, has two channels.
    fn default() -> Self {
        GatewayScript {
            greeting: None,
            answer: Arc::new(|_| Vec::new()),
            http: Arc::new(|request| match (request.method.as_str(), request.path.as_str()) {
                ("POST", "/send") => Reply::json(200, r#"{"status":"sent"}"#),
                ("GET", "/channels") => Reply::json(200, r#"["telegram","slack"]"#),
                _ => Reply::json(404, r#"{"detail":"not found"}"#),
            }),
            is_deaf: false,
        }
    }
}

/// The gateway. It is gone with its value, as a killed process is.
pub struct Gateway {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

struct Shared {
    script: GatewayScript,
    /// One for each connection that stands.
    connections: Mutex<Vec<mpsc::UnboundedSender<Message>>>,
    /// How many there were so far.
    opened: watch::Sender<usize>,
    frames: watch::Sender<Vec<Value>>,
    requests: Arc<Mutex<Vec<Recorded>>>,
}

impl Gateway {
    pub async fn start(script: GatewayScript) -> Self {
        // Another can be started there when this one is gone.
        Self::on(SocketAddr::from(([127, 0, 0, 1], server_port())), script).await
    }

    /// On an address of the test's choosing, such as that of a gateway that is gone.
    pub async fn on(address: SocketAddr, script: GatewayScript) -> Self {
        let listener = TcpListener::bind(address).await.expect("a free port");
        let address = listener.local_addr().expect("a bound socket");
        let shared = Arc::new(Shared {
            script,
            connections: Mutex::default(),
            opened: watch::Sender::new(0),
            frames: watch::Sender::new(Vec::new()),
            requests: Arc::default(),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Gateway { address, shared, accepting }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where a bridge connects.
    pub fn url(&self) -> String {
        format!("ws://{}/ws", self.address)
    }

    /// Sends a text to everybody who is connected.
    pub fn push(&self, text: impl Into<String>) {
        self.push_frame(Message::text(text.into()));
    }

    pub fn push_bytes(&self, bytes: Vec<u8>) {
        self.push_frame(Message::binary(bytes));
    }

    fn push_frame(&self, frame: Message) {
        lock(&self.shared.connections).retain(|connection| connection.send(frame.clone()).is_ok());
    }

    /// Cuts every connection that stands.
    pub fn hang_up(&self) {
        lock(&self.shared.connections).clear();
    }

    /// Waits until there have been `count` connections.
    pub async fn opened(&self, count: usize) {
        let mut opened = self.shared.opened.subscribe();
        opened.wait_for(|seen| *seen >= count).await.expect("the gateway runs");
    }

    pub fn connections_so_far(&self) -> usize {
        *self.shared.opened.borrow()
    }

    /// The frames that came in so far, in order.
    pub fn frames(&self) -> Vec<Value> {
        self.shared.frames.borrow().clone()
    }

    /// Waits until `count` frames have come in.
    pub async fn received(&self, count: usize) -> Vec<Value> {
        let mut frames = self.shared.frames.subscribe();
        frames.wait_for(|seen| seen.len() >= count).await.expect("the gateway runs").clone()
    }

    /// The HTTP requests so far.
    pub fn requests(&self) -> Vec<Recorded> {
        lock(&self.shared.requests).clone()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    // The connections end with the gateway.
    let mut connections = JoinSet::new();
    while let Ok((socket, _)) = listener.accept().await {
        connections.spawn(serve(socket, Arc::clone(&shared)));
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(socket: TcpStream, shared: Arc<Shared>) {
    // A test that sends thousands of small frames should not wait for acknowledgements.
    let _ = socket.set_nodelay(true);
    if !wants_a_web_socket(&socket).await {
        let (hung_up, _) = watch::channel(0);
        let script = Arc::clone(&shared.script.http);
        return fake_server::serve(socket, script, Arc::clone(&shared.requests), hung_up).await;
    }
    let Ok(socket) = tokio_tungstenite::accept_async(socket).await else { return };
    converse(socket, &shared).await;
}

/// Looks at the request without taking it out of the socket.
async fn wants_a_web_socket(socket: &TcpStream) -> bool {
    let mut head = [0; 4_096];
    loop {
        match socket.peek(&mut head).await {
            Ok(0) | Err(_) => return false,
            Ok(count) => {
                let text = String::from_utf8_lossy(&head[..count]).to_ascii_lowercase();
                if text.contains("upgrade: websocket") {
                    return true;
                }
                if text.contains("\r\n\r\n") || count == head.len() {
                    return false;
                }
            }
        }
        tokio::task::yield_now().await;
    }
}

async fn converse(mut socket: WebSocketStream<TcpStream>, shared: &Shared) {
    let (sender, mut outgoing) = mpsc::unbounded_channel();
    if let Some(greeting) = &shared.script.greeting {
        // Whether it arrives shows in what the other side does.
        let _ = socket.send(Message::text(greeting.clone())).await;
    }
    lock(&shared.connections).push(sender);
    shared.opened.send_modify(|count| *count += 1);
    if shared.script.is_deaf {
        while outgoing.recv().await.is_some() {}
        return;
    }
    let (mut sink, mut stream) = socket.split();
    let (answers, mut answered) = mpsc::unbounded_channel();
    // Reading does not wait for writing, as in any good gateway.
    let reading = async {
        while let Some(Ok(frame)) = stream.next().await {
            let Message::Text(text) = frame else { continue };
            let value = serde_json::from_str(&text).unwrap_or_else(|_| Value::String(text.to_string()));
            shared.frames.send_modify(|frames| frames.push(value));
            for answer in (shared.script.answer)(&text) {
                let _ = answers.send(Message::text(answer));
            }
        }
    };
    let writing = async {
        loop {
            let frame = tokio::select! {
                frame = outgoing.recv() => frame,
                frame = answered.recv() => frame,
            };
            // `hang_up` ends the channel, and the connection with it.
            let Some(frame) = frame else { return };
            if sink.send(frame).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = reading => {}
        () = writing => {}
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

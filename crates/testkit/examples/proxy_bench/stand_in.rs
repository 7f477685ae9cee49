//! An engine that answers at once, in the forms of chat completions, of text completions and of Ollama. Bare sockets and bytes made beforehand, so
//! that it costs next to nothing.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// The model that answers at once, the one that sends its tokens one by one, and the one that takes long between tokens.
pub const MODEL: &str = "bench";
pub const PACED_MODEL: &str = "bench-paced";
pub const SLOW_MODEL: &str = "bench-slow";

/// Pieces of a streamed answer, besides its beginning and end.
pub const TOKENS: usize = 64;

/// Between two steps of the paced model. Each step gives one token to every stream, as engines with continuous batching do, and
/// a gateway has read it before the next comes.
const STEP: Duration = Duration::from_micros(100);

/// Between two tokens of the slow model.
const SLOW: Duration = Duration::from_millis(250);

static WHOLE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let text = "word ".repeat(TOKENS);
    json(&format!(
        r#"{{"id":"chatcmpl-bench","object":"chat.completion","created":1700000000,"model":"{MODEL}","choices":[{{"index":0,"message":{{"role":"assistant","content":"{text}"}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":12,"completion_tokens":{TOKENS},"total_tokens":{}}}}}"#,
        TOKENS + 12
    ))
});
static TEXT_WHOLE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let text = "word ".repeat(TOKENS);
    json(&format!(
        r#"{{"id":"cmpl-bench","object":"text_completion","created":1700000000,"model":"{MODEL}","choices":[{{"index":0,"text":"{text}","logprobs":null,"finish_reason":"stop"}}],"usage":{{"prompt_tokens":12,"completion_tokens":{TOKENS},"total_tokens":{}}}}}"#,
        TOKENS + 12
    ))
});
static TEXT_EVENTS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let chunk = |text: &str, finish: &str| {
        event(&format!(
            "data: {{\"id\":\"cmpl-bench\",\"object\":\"text_completion\",\"created\":1700000000,\"model\":\"{MODEL}\",\"choices\":[{{\"index\":0,\"text\":\"{text}\",\"logprobs\":null,\"finish_reason\":{finish}}}]}}\n\n"
        ))
    };
    let mut events: Vec<_> = (0..TOKENS).map(|_| chunk("word ", "null")).collect();
    events.push(chunk("", r#""stop""#));
    events.push(event("data: [DONE]\n\n"));
    events
});
static OLLAMA_WHOLE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let text = "word ".repeat(TOKENS);
    json(&format!(
        r#"{{"model":"{MODEL}","created_at":"2026-11-15T09:00:00Z","message":{{"role":"assistant","content":"{text}"}},"done":true,"done_reason":"stop","prompt_eval_count":12,"eval_count":{TOKENS}}}"#
    ))
});
static MODELS: LazyLock<Vec<u8>> = LazyLock::new(|| {
    json(&format!(
        r#"{{"object":"list","data":[{{"id":"{MODEL}","object":"model","created":1,"owned_by":"x"}},{{"id":"{PACED_MODEL}","object":"model","created":1,"owned_by":"x"}},{{"id":"{SLOW_MODEL}","object":"model","created":1,"owned_by":"x"}}]}}"#
    ))
});
static TAGS: LazyLock<Vec<u8>> =
    LazyLock::new(|| json(&format!(r#"{{"models":[{{"name":"{MODEL}","model":"{MODEL}"}}]}}"#)));
static EVENTS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let chunk = |delta: &str, finish: &str| {
        event(&format!(
            "data: {{\"id\":\"chatcmpl-bench\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"{MODEL}\",\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{finish}}}]}}\n\n"
        ))
    };
    let mut events = vec![chunk(r#"{"role":"assistant"}"#, "null")];
    events.extend((0..TOKENS).map(|_| chunk(r#"{"content":"word "}"#, "null")));
    events.push(chunk("{}", r#""stop""#));
    events.push(event("data: [DONE]\n\n"));
    events
});
static LINES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let line = |content: &str, rest: &str| {
        event(&format!(
            "{{\"model\":\"{MODEL}\",\"created_at\":\"2026-11-15T09:00:00Z\",\"message\":{{\"role\":\"assistant\",\"content\":\"{content}\"}},{rest}}}\n"
        ))
    };
    let mut lines: Vec<_> = (0..TOKENS).map(|_| line("word ", r#""done":false"#)).collect();
    lines.push(line(
        "",
        &format!(r#""done":true,"done_reason":"stop","prompt_eval_count":12,"eval_count":{TOKENS}"#),
    ));
    lines
});

const STREAM_HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

fn json(body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A piece of a body of unknown length.
fn event(text: &str) -> Vec<u8> {
    format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
}

/// Listens on a free port, prints it on stdout, and answers until it is killed.
pub fn run() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    println!("{}", listener.local_addr().expect("an address").port());
    let burst: Arc<[u8]> = all_at_once(&EVENTS).into();
    let streams = Streams {
        burst,
        texts: all_at_once(&TEXT_EVENTS).into(),
        lines: all_at_once(&LINES).into(),
        paced: Paced::start(),
    };
    for socket in listener.incoming().flatten() {
        let streams = streams.clone();
        // A thread each, with a small stack: a thousand of them fit.
        let served = move || answer_all(socket, &streams);
        std::thread::Builder::new().stack_size(128 << 10).spawn(served).expect("a thread");
    }
}

/// Whole streams, as they go out.
#[derive(Clone)]
struct Streams {
    burst: Arc<[u8]>,
    texts: Arc<[u8]>,
    lines: Arc<[u8]>,
    paced: Paced,
}

fn all_at_once(pieces: &[Vec<u8>]) -> Vec<u8> {
    let mut all = STREAM_HEAD.to_vec();
    all.extend(pieces.iter().flatten());
    all.extend_from_slice(b"0\r\n\r\n");
    all
}

/// Answers one request after the other, until the caller hangs up.
fn answer_all(mut socket: TcpStream, streams: &Streams) -> Option<()> {
    socket.set_nodelay(true).ok()?;
    let mut buffer = Vec::with_capacity(16 << 10);
    loop {
        buffer.clear();
        let body_at = read_request(&mut socket, &mut buffer)?;
        let (head, body) = buffer.split_at(body_at);
        let has = |text: &str| memchr::memmem::find(body, text.as_bytes()).is_some();
        let stream = has("\"stream\":true") || has("\"stream\": true");
        match (head, stream) {
            (head, _) if head.starts_with(b"GET /api/tags") => socket.write_all(&TAGS),
            (head, _) if head.starts_with(b"GET ") => socket.write_all(&MODELS),
            (head, true) if head.starts_with(b"POST /api/chat") => socket.write_all(&streams.lines),
            (head, true) if head.starts_with(b"POST /v1/completions") => socket.write_all(&streams.texts),
            (head, false) if head.starts_with(b"POST /v1/completions") => socket.write_all(&TEXT_WHOLE),
            (head, false) if head.starts_with(b"POST /api/chat") => socket.write_all(&OLLAMA_WHOLE),
            (_, true) if has(SLOW_MODEL) => take_time(&mut socket),
            (_, true) if has(PACED_MODEL) => streams.paced.answer(&socket),
            (_, true) => socket.write_all(&streams.burst),
            (_, false) => socket.write_all(&WHOLE),
        }
        .ok()?;
    }
}

fn take_time(socket: &mut TcpStream) -> std::io::Result<()> {
    socket.write_all(STREAM_HEAD)?;
    for event in EVENTS.iter() {
        socket.write_all(event)?;
        std::thread::sleep(SLOW);
    }
    socket.write_all(b"0\r\n\r\n")
}

/// The thread that writes the streams of the paced model.
#[derive(Clone)]
struct Paced(Sender<PacedStream>);

struct PacedStream {
    socket: TcpStream,
    /// How many events are written.
    written: usize,
    /// Dropped at the end of the stream.
    _under_way: SyncSender<()>,
}

impl Paced {
    fn start() -> Self {
        let (sender, begun) = channel::<PacedStream>();
        std::thread::spawn(move || {
            let mut streams: Vec<PacedStream> = Vec::new();
            loop {
                std::thread::sleep(STEP);
                streams.extend(begun.try_iter());
                streams.retain_mut(|stream| stream.step().unwrap_or(false));
            }
        });
        Paced(sender)
    }

    /// Waits until the whole stream is written.
    fn answer(&self, mut socket: &TcpStream) -> std::io::Result<()> {
        socket.write_all(STREAM_HEAD)?;
        let (under_way, over) = sync_channel(0);
        let stream = PacedStream { socket: socket.try_clone()?, written: 0, _under_way: under_way };
        self.0.send(stream).expect("the thread lives");
        let _ = over.recv();
        Ok(())
    }
}

impl PacedStream {
    /// Writes one event; whether there are more. The end comes with the last, as engines send it.
    fn step(&mut self) -> std::io::Result<bool> {
        let is_last = self.written == TOKENS + 1;
        match is_last {
            false => self.socket.write_all(&EVENTS[self.written])?,
            true => {
                self.socket.write_all(&[EVENTS[self.written..].concat().as_slice(), b"0\r\n\r\n"].concat())?
            }
        }
        self.written += 1;
        Ok(!is_last)
    }
}

/// Reads a whole request; gives where its body begins.
fn read_request(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<usize> {
    let mut piece = [0; 8 << 10];
    loop {
        let read = socket.read(&mut piece).ok().filter(|read| *read > 0)?;
        buffer.extend_from_slice(&piece[..read]);
        let Some(end) = memchr::memmem::find(buffer, b"\r\n\r\n") else { continue };
        let head = std::str::from_utf8(&buffer[..end]).ok()?.to_ascii_lowercase();
        let length = head.split("content-length:").nth(1).and_then(|rest| rest.lines().next());
        let length: usize = length.map_or(Some(0), |length| length.trim().parse().ok())?;
        if buffer.len() >= end + 4 + length {
            return Some(end + 4);
        }
    }
}

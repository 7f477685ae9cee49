//! A simulated server with an OpenAI-compatible API. While there are faults, it answers as badly as real servers sometimes do.

use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::time::Duration;

use hob_testkit::Dice;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::sleep;
use turmoil::net::{TcpListener, TcpStream};

use crate::ledger::Ledger;

pub const PORT: u16 = 8000;

/// The answer to a question, in the pieces of a stream.
pub fn pieces(question: u64) -> Vec<String> {
    (0..=question % 5).map(|piece| format!("{question}.{piece} ")).collect()
}

/// One server.
#[derive(Clone)]
pub struct SimulatedEngine {
    pub number: usize,
    pub ledger: Ledger,
    pub dice: Rc<RefCell<Dice>>,
}

/// A complete request.
struct Request {
    is_list: bool,
    body: Value,
}

/// How a server treats a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Behaviour {
    Well,
    /// Answers, and closes the connection without saying so.
    WellAndCloses,
    Busy,
    Fails,
    HangsUp,
    Hangs,
    /// Closes the connection after a part of the answer.
    BreaksOff,
    /// Sends nothing more after a part of the answer.
    Stalls,
    /// Ends a body without a length after a part of the answer, which looks like its end.
    EndsEarly,
}

const BEHAVIOURS: [Behaviour; 12] = [
    Behaviour::Well,
    Behaviour::Well,
    Behaviour::Well,
    Behaviour::WellAndCloses,
    Behaviour::WellAndCloses,
    Behaviour::Busy,
    Behaviour::Fails,
    Behaviour::HangsUp,
    Behaviour::Hangs,
    Behaviour::BreaksOff,
    Behaviour::Stalls,
    Behaviour::EndsEarly,
];

/// Longer than any client of these tests waits.
const FOREVER: Duration = Duration::from_secs(3600);

impl SimulatedEngine {
    pub async fn serve(self) -> turmoil::Result {
        let listener = TcpListener::bind((IpAddr::V4(Ipv4Addr::UNSPECIFIED), PORT)).await?;
        loop {
            let (socket, _) = listener.accept().await?;
            let engine = self.clone();
            tokio::task::spawn_local(async move {
                let _open = engine.ledger.accept();
                // A client that leaves is no error of the server.
                _ = engine.connection(socket).await;
            });
        }
    }

    async fn connection(&self, mut socket: TcpStream) -> io::Result<()> {
        let mut unread = Vec::new();
        while let Some(Request { is_list, body }) = read_request(&mut socket, &mut unread).await? {
            let delay = self.dice.borrow_mut().milliseconds(20);
            sleep(delay).await;
            if is_list {
                self.send(&mut socket, &whole(200, &json!({ "data": [{ "id": "m" }] }))).await?;
            } else if self.answer(&mut socket, &body).await? == Behaviour::WellAndCloses {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Answers a question. An error closes the connection.
    async fn answer(&self, socket: &mut TcpStream, body: &Value) -> io::Result<Behaviour> {
        let question = question(body);
        let behaviour = match self.ledger.is_calm() {
            true => Behaviour::Well,
            false => BEHAVIOURS[self.dice.borrow_mut().index(BEHAVIOURS.len())],
        };
        self.ledger.note(format!("engine {} gets question {question}: {behaviour:?}", self.number));
        if behaviour == Behaviour::Busy {
            let refusal = whole(503, &json!({ "error": { "message": "loading" } }));
            return self.send(socket, &refusal).await.map(|()| behaviour);
        }
        self.ledger.work(self.number, question);
        match behaviour {
            Behaviour::Busy | Behaviour::Well | Behaviour::WellAndCloses => {}
            Behaviour::Fails => {
                let failure = whole(500, &json!({ "error": { "message": "out of memory" } }));
                return self.send(socket, &failure).await.map(|()| behaviour);
            }
            Behaviour::HangsUp => return Err(io::ErrorKind::ConnectionAborted.into()),
            Behaviour::Hangs => {
                wait_for_end(socket).await;
                return Err(io::ErrorKind::TimedOut.into());
            }
            Behaviour::BreaksOff | Behaviour::Stalls | Behaviour::EndsEarly => {
                return self.answer_in_part(socket, body, question, behaviour).await;
            }
        }
        let parts = parts(body, question, Framing::Chunked);
        for part in parts {
            let delay = self.dice.borrow_mut().milliseconds(50);
            sleep(delay).await;
            self.send(socket, &part).await?;
        }
        Ok(behaviour)
    }

    async fn answer_in_part(
        &self,
        socket: &mut TcpStream,
        body: &Value,
        question: u64,
        behaviour: Behaviour,
    ) -> io::Result<Behaviour> {
        let framing = match behaviour {
            Behaviour::EndsEarly => Framing::UntilClosed,
            _ => Framing::Chunked,
        };
        let bytes = parts(body, question, framing).concat();
        let end = self.dice.borrow_mut().index(bytes.len());
        self.send(socket, &bytes[..end]).await?;
        if behaviour == Behaviour::Stalls {
            wait_for_end(socket).await;
        }
        Err(io::ErrorKind::ConnectionAborted.into())
    }

    /// Sends bytes in one to three segments.
    async fn send(&self, socket: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        for _ in 0..2 {
            let (segment, later) = rest.split_at(self.dice.borrow_mut().index(rest.len() + 1));
            socket.write_all(segment).await?;
            rest = later;
        }
        socket.write_all(rest).await
    }
}

/// Waits until the client leaves.
async fn wait_for_end(socket: &mut TcpStream) {
    let left = async { while matches!(socket.read(&mut [0; 64]).await, Ok(1..)) {} };
    _ = tokio::time::timeout(FOREVER, left).await;
}

/// The next complete request; `None` at the end of the connection.
async fn read_request(socket: &mut TcpStream, unread: &mut Vec<u8>) -> io::Result<Option<Request>> {
    loop {
        if let Some(request) = take_request(unread) {
            return Ok(Some(request));
        }
        if socket.read_buf(unread).await? == 0 {
            return Ok(None);
        }
    }
}

fn take_request(unread: &mut Vec<u8>) -> Option<Request> {
    let end = unread.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&unread[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok());
    let length: usize = length.unwrap_or(0);
    let body = unread.get(end..end + length)?;
    let body = serde_json::from_slice(body).unwrap_or_default();
    unread.drain(..end + length);
    Some(Request { is_list: head.starts_with("get "), body })
}

/// The number in `question 7`.
fn question(body: &Value) -> u64 {
    let text = body["messages"][0]["content"].as_str().expect("a message");
    text.rsplit(' ').next().and_then(|number| number.parse().ok()).expect("a number")
}

fn whole(status: u16, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    (head + &body).into_bytes()
}

/// How the length of a stream is known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Framing {
    Chunked,
    UntilClosed,
}

/// The parts of an answer with a success status, streamed if the request asks for it.
fn parts(body: &Value, question: u64, framing: Framing) -> Vec<Vec<u8>> {
    let pieces = pieces(question);
    if body["stream"] != json!(true) {
        let message = json!({ "role": "assistant", "content": pieces.concat() });
        let choice = json!({ "index": 0, "message": message, "finish_reason": "stop" });
        return vec![whole(200, &json!({ "model": "m", "choices": [choice] }))];
    }
    let choice = |delta: Value, end: Value| {
        json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": end }] }).to_string()
    };
    let mut events: Vec<String> =
        pieces.iter().map(|piece| choice(json!({ "content": piece }), Value::Null)).collect();
    events.push(choice(json!({}), json!("stop")));
    events.push("[DONE]".to_owned());
    let head = match framing {
        Framing::Chunked => "transfer-encoding: chunked",
        Framing::UntilClosed => "connection: close",
    };
    let mut parts = vec![format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{head}\r\n\r\n")];
    parts.extend(events.into_iter().map(|event| framed(&format!("data: {event}\n\n"), framing)));
    if framing == Framing::Chunked {
        parts.push("0\r\n\r\n".to_owned());
    }
    parts.into_iter().map(String::into_bytes).collect()
}

fn framed(event: &str, framing: Framing) -> String {
    match framing {
        Framing::Chunked => format!("{:x}\r\n{event}\r\n", event.len()),
        Framing::UntilClosed => event.to_owned(),
    }
}

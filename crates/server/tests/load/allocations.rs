//! The number of allocations of a request: the part of its cost that can be checked without a clock.
//!
//! Engine and client of this test are plain sockets that allocate nothing during the count, so all allocations are the server's.

use std::alloc::System;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use hob_engines::{EndpointOptions, Style};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

use crate::TURN;
use crate::support::{TestServer, engine_with};

#[global_allocator]
pub static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const REQUESTS: usize = 200;
const EVENTS: usize = 64;

/// The limit for a complete answer.
const MOST_FOR_AN_ANSWER: usize = 100;
/// The limit for a stream without its events.
const MOST_FOR_A_STREAM: usize = 120;
/// The same for a response of the Responses API, which has more to say about itself.
const MOST_FOR_A_RESPONSE: usize = 110;
/// The limit for each event of a stream.
const MOST_FOR_AN_EVENT: usize = 2;

const MODELS: &str =
    "HTTP/1.1 200 OK\r\ncontent-length: 37\r\n\r\n{\"object\":\"list\",\"data\":[{\"id\":\"m\"}]}";

fn whole() -> String {
    let body = r#"{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Blue light is scattered more than red."},"finish_reason":"stop"}],"usage":{"prompt_tokens":12,"completion_tokens":9,"total_tokens":21}}"#;
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn stream(events: usize) -> String {
    let mut answer =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n".to_owned();
    let mut push = |data: &str| answer += &format!("{:x}\r\ndata: {data}\n\n\r\n", data.len() + 8);
    for _ in 0..events {
        push(r#"{"choices":[{"index":0,"delta":{"content":"word "},"finish_reason":null}]}"#);
    }
    push(r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#);
    push("[DONE]");
    answer + "0\r\n\r\n"
}

/// An engine that gives the same answer to every question.
fn engine(answer: String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let answer = answer.clone();
            std::thread::spawn(move || {
                let mut request = [0; 16 << 10];
                while socket.read(&mut request).is_ok_and(|read| read > 0) {
                    let answer = if request.starts_with(b"GET") { MODELS } else { &answer };
                    socket.write_all(answer.as_bytes()).unwrap();
                }
            });
        }
    });
    address
}

/// The path of an API, and a question in its form.
type Question = (&'static str, &'static str);

const CHAT: Question = (
    "/v1/chat/completions",
    r#"{"model":"m","messages":[{"role":"user","content":"Why is the sky blue?"}],"stream":"#,
);
const RESPONSES: Question = (
    "/v1/responses",
    r#"{"model":"m","input":[{"role":"user","content":"Why is the sky blue?"}],"store":false,"stream":"#,
);

/// Sends requests on its own connection and returns the number of allocations per request.
fn ask(server: SocketAddr, (path, question): Question, kind: &str, end: &[u8]) -> usize {
    let body = format!("{question}{kind}}}");
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut socket = TcpStream::connect(server).unwrap();
    let mut answer = vec![0; 256 << 10];
    let mut once = || {
        socket.write_all(request.as_bytes()).unwrap();
        let mut length = 0;
        while !answer[..length].ends_with(end) {
            let read = socket.read(&mut answer[length..]).unwrap();
            assert!(read > 0, "it hung up after {:?}", String::from_utf8_lossy(&answer[..length]));
            length += read;
        }
        assert!(answer.starts_with(b"HTTP/1.1 200"));
    };
    // The first requests open connections and fill caches.
    (0..20).for_each(|_| once());
    let region = Region::new(ALLOCATOR);
    (0..REQUESTS).for_each(|_| once());
    let change = region.change();
    (change.allocations + change.reallocations) / REQUESTS
}

async fn counted(answer: String, question: Question, kind: &'static str, end: &'static [u8]) -> usize {
    let url = format!("http://{}", engine(answer));
    let server = TestServer::start(engine_with(EndpointOptions::new("vllm", url), Style::VLLM)).await;
    let address = server.address;
    let count = tokio::task::spawn_blocking(move || ask(address, question, kind, end)).await.unwrap();
    server.stop().await;
    count
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_stay_within_their_number_of_allocations() {
    let _turn = TURN.lock().await;
    let end = b"\r\n0\r\n\r\n";
    let answer = counted(whole(), CHAT, "false", b"\"total_tokens\":21}}").await;
    let short = counted(stream(1), CHAT, "true", end).await;
    let long = counted(stream(1 + EVENTS), CHAT, "true", end).await;
    let event = (long - short).div_ceil(EVENTS);
    println!("an answer {answer}, a short stream {short}, each event {event}");
    assert!(answer <= MOST_FOR_AN_ANSWER, "an answer asks {answer} times");
    assert!(short <= MOST_FOR_A_STREAM, "a short stream asks {short} times");
    assert!(event <= MOST_FOR_AN_EVENT, "{EVENTS} events ask {} times", long - short);

    let response = counted(stream(1), RESPONSES, "true", end).await;
    let longer = counted(stream(1 + EVENTS), RESPONSES, "true", end).await;
    println!("a short response {response}, {EVENTS} events {}", longer - response);
    assert!(response <= MOST_FOR_A_RESPONSE, "a short response asks {response} times");
    assert!(
        longer - response <= MOST_FOR_AN_EVENT * EVENTS,
        "{EVENTS} events of a response ask {} times",
        longer - response
    );
}

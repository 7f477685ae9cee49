//! Many concurrent clients, and many that disconnect: everything arrives unchanged, and nothing leaks.
//!
//! Client, server and engine are all in this process, so a leak of any of them is visible. The tests run one at a time, because
//! some of them count the resources of the process.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot set itself up should fail loudly"
)]

mod allocations;
#[path = "../support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use hob_config::ServerConfig;
use hob_engines::Style;
use hob_testkit::{FakeServer, Recorded, Reply};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::support::{FINISH, TestServer, WAIT_LIMIT, engine_at, models};

static TURN: Mutex<()> = Mutex::const_new(());

/// The `count` tokens of the engine's answer to `prompt`, different for every prompt.
fn tokens(prompt: &str, count: usize) -> impl Iterator<Item = String> {
    let prompt = prompt.to_owned();
    (0..count).map(move |index| format!("{prompt}·{index} \"\\\n\u{1f600}"))
}

fn chunks(prompt: &str, count: usize) -> String {
    tokens(prompt, count)
        .map(|token| {
            let choice = json!({ "index": 0, "delta": { "content": token }, "finish_reason": null });
            format!("data: {}\n\n", json!({ "choices": [choice] }))
        })
        .collect()
}

fn prompt_of(request: &Recorded) -> String {
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    body["messages"][0]["content"].as_str().unwrap().to_owned()
}

fn asking(prompt: &str) -> Value {
    json!({ "model": "m", "stream": true, "messages": [{ "role": "user", "content": prompt }] })
}

/// The complete body that the server must send for `prompt`, with the id of its stream.
fn expected(prompt: &str, count: usize, got: &str) -> String {
    let first = got.split("\n\n").next().and_then(|event| event.strip_prefix("data: ")).unwrap();
    let first: Value = serde_json::from_str(first).unwrap();
    let head = format!(
        "data: {{\"id\":{},\"object\":\"chat.completion.chunk\",\"created\":{},\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":",
        first["id"], first["created"]
    );
    let mut text = format!("{head}{{\"role\":\"assistant\"}},\"finish_reason\":null}}]}}\n\n");
    for token in tokens(prompt, count) {
        text += &format!("{head}{},\"finish_reason\":null}}]}}\n\n", json!({ "content": token }));
    }
    text + &format!("{head}{{}},\"finish_reason\":\"stop\"}}]}}\n\ndata: [DONE]\n\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_streams_at_once_arrive_byte_for_byte() {
    const STREAMS: usize = 200;
    const TOKENS: usize = 200;
    let _turn = TURN.lock().await;
    let fake = FakeServer::start(|request| match request.method.as_str() {
        "GET" => models(),
        // Packets end anywhere, also in the middle of events and characters.
        _ => Reply::sse(chunks(&prompt_of(request), TOKENS) + FINISH).in_packets_of(997),
    })
    .await;
    let server = TestServer::start(engine_at(&fake, Style::VLLM)).await;
    let streams = (0..STREAMS).map(async |number| {
        let prompt = format!("prompt {number}");
        let text = server.chat(&asking(&prompt)).await.text().await.unwrap();
        assert_eq!(text, expected(&prompt, TOKENS, &text));
    });
    futures::future::join_all(streams).await;
}

/// The resources of this process.
#[derive(Debug, Clone, Copy)]
struct Held {
    /// Entries of `/proc/self/fd`: sockets, mostly.
    files: usize,
    /// Tasks of the runtime that have not ended.
    tasks: usize,
    /// Allocated bytes. The resident size depends on the machine.
    memory: usize,
}

impl Held {
    fn now() -> Self {
        let stats = allocations::ALLOCATOR.stats();
        Held {
            files: std::fs::read_dir("/proc/self/fd").unwrap().count(),
            tasks: tokio::runtime::Handle::current().metrics().num_alive_tasks(),
            memory: stats.bytes_allocated.saturating_sub(stats.bytes_deallocated),
        }
    }
}

/// Sends `count` requests, 50 at a time. Every tenth disconnects in the middle of its stream.
async fn ask_and_leave(server: &TestServer, fake: &FakeServer, count: usize) {
    stream::iter(0..count)
        .for_each_concurrent(50, async |number| {
            if number % 10 == 0 {
                // The requests that the fake records must not be measured.
                fake.forget();
                let mut response = server.chat(&asking("endless")).await;
                let beginning = response.chunk().await.unwrap().expect("the stream has begun");
                assert!(beginning.starts_with(b"data: "));
            } else {
                let text = server.chat(&asking("short")).await.text().await.unwrap();
                assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
            }
        })
        .await;
}

/// A first thousand requests warm everything up. Then client and server are stopped, the engine's
/// idle connections time out, and the resources are counted. The same again after ten thousand. Sockets and tasks must be
/// at the same number, which is that of the fake engine alone. Memory in use may differ by tables that have grown, and
/// by less than a hundred bytes for each request.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_requests_with_disconnects_leak_nothing() {
    let _turn = TURN.lock().await;
    let fake = FakeServer::start(|request| match request.method.as_str() {
        "GET" => models(),
        _ if prompt_of(request) == "endless" => Reply::sse(chunks("endless", 3)).then_silence(),
        _ => Reply::sse(chunks("short", 3) + FINISH),
    })
    .await;
    let alone = Held::now();
    let mut hang_ups = 0;
    let mut held = Vec::new();
    for count in [1_000, 10_000] {
        let server = TestServer::start_with(engine_at(&fake, Style::VLLM), ServerConfig::default()).await;
        ask_and_leave(&server, &fake, count).await;
        hang_ups += count / 10;
        tokio::time::timeout(WAIT_LIMIT, fake.hung_up(hang_ups))
            .await
            .expect("every hang-up reaches the engine");
        assert_eq!(server.stop().await, 0);
        held.push(settled(alone).await);
    }
    let (warm, after) = (held[0], held[1]);
    assert_eq!(fake.hang_ups(), hang_ups, "no other connection was closed");
    assert!(after.memory < warm.memory + (1 << 20), "{warm:?} → {after:?}");
}

/// The resources after sockets and tasks are back at those of `alone`. Closing takes a moment on both sides of a
/// connection, so this polls.
async fn settled(alone: Held) -> Held {
    let began = Instant::now();
    loop {
        let held = Held::now();
        if held.files <= alone.files && held.tasks <= alone.tasks {
            return held;
        }
        assert!(began.elapsed() < WAIT_LIMIT, "{alone:?} → {held:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

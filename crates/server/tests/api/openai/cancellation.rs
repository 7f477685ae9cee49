//! A client that disconnects, streaming or not, cancels the engine's work immediately.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hob_engines::Style;
use hob_testkit::{FakeServer, Reply};
use serde_json::json;
use tokio::sync::Notify;

use crate::client::{asking, chunk};
use crate::support::{TestServer, WAIT_LIMIT, engine_at, models};

/// The longest time until the engine is cancelled.
const AT_ONCE: Duration = Duration::from_millis(100);

/// Attempts: a busy machine may be late, but not every time.
const ATTEMPTS: usize = 50;

/// Waits until the engine's connection was closed for the `count`th time, and returns how long that took.
async fn time_to_hang_up(fake: &FakeServer, count: usize) -> Duration {
    let began = Instant::now();
    tokio::time::timeout(WAIT_LIMIT, fake.hung_up(count)).await.expect("the engine's request ends");
    began.elapsed()
}

#[tokio::test]
async fn a_disconnect_during_a_stream_cancels_the_engine_request() {
    let fake = FakeServer::start(|request| match request.method.as_str() {
        "GET" => models(),
        _ => Reply::sse(chunk(r#"{"content":"hi"}"#)).then_silence(),
    })
    .await;
    let server = TestServer::start(engine_at(&fake, Style::VLLM)).await;
    let mut fastest = WAIT_LIMIT;
    for attempt in 1..=ATTEMPTS {
        let mut response = server.chat(&asking(json!({ "stream": true }))).await;
        response.chunk().await.unwrap().expect("the stream has begun");
        drop(response);
        fastest = fastest.min(time_to_hang_up(&fake, attempt).await);
        if fastest < AT_ONCE {
            break;
        }
    }
    assert!(fastest < AT_ONCE, "{fastest:?}");
}

#[tokio::test]
async fn a_disconnect_before_the_answer_cancels_the_engine_request() {
    for stream in [false, true] {
        let asked = Arc::new(Notify::new());
        let tell = Arc::clone(&asked);
        let fake = FakeServer::start(move |request| {
            if request.method == "GET" {
                return models();
            }
            tell.notify_one();
            Reply::silence()
        })
        .await;
        let server = TestServer::start(engine_at(&fake, Style::VLLM)).await;
        let mut fastest = WAIT_LIMIT;
        for attempt in 1..=ATTEMPTS {
            let body = asking(json!({ "stream": stream }));
            tokio::select! {
                response = server.chat(&body) => panic!("answered {response:?}"),
                () = asked.notified() => {}
            }
            fastest = fastest.min(time_to_hang_up(&fake, attempt).await);
            if fastest < AT_ONCE {
                break;
            }
        }
        assert!(fastest < AT_ONCE, "{fastest:?}");
    }
}

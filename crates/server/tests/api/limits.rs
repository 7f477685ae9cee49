//! How much the server takes on, and how long it waits for clients that are slow, silent or strange.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hob_config::ServerConfig;
use hob_engines::Style;
use hob_testkit::{FakeServer, Hold, Reply, ScriptedEngine};
use serde_json::{Value, json};

use crate::client::{FINISH, PATIENCE, Raw, asking, chunk, models, post_chat};
use crate::support::{Running, engine_at};

fn streaming() -> Value {
    asking(json!({ "stream": true }))
}

/// An engine whose first answer waits in its middle for `hold`, and whose others do not.
async fn first_held(hold: &Hold) -> FakeServer {
    let (hold, answers) = (hold.clone(), AtomicUsize::new(0));
    FakeServer::start(move |request| {
        let half = chunk(r#"{"content":"hi"}"#);
        match request.method.as_str() {
            "GET" => models(),
            _ if answers.fetch_add(1, Ordering::Relaxed) == 0 => Reply::sse(half).then_held(&hold, FINISH),
            _ => Reply::sse(format!("{half}{FINISH}")),
        }
    })
    .await
}

async fn scripted(config: ServerConfig) -> Running {
    Running::start_with(Arc::new(ScriptedEngine::saying(&["hi"])), config).await
}

#[tokio::test]
async fn one_too_many_is_told_to_come_back_until_the_stream_before_it_ends() {
    let hold = Hold::new();
    let fake = first_held(&hold).await;
    let config = ServerConfig { max_in_flight: 1, max_waiting: 0, ..ServerConfig::default() };
    let server = Running::start_with(engine_at(&fake, Style::VLLM), config).await;

    let first = server.chat(&streaming()).await;
    let refused = server.chat(&streaming()).await;
    assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (429, &"1".parse().unwrap()));
    assert_eq!(refused.json::<Value>().await.unwrap()["error"]["code"], "queue_full");

    hold.release();
    assert!(first.text().await.unwrap().ends_with("data: [DONE]\n\n"));
    assert_eq!(server.chat(&streaming()).await.status(), 200);
}

#[tokio::test]
async fn waiting_has_an_end() {
    let hold = Hold::new();
    let fake = first_held(&hold).await;
    let queue_timeout = Duration::from_millis(20);
    let config = ServerConfig { max_in_flight: 1, queue_timeout, ..ServerConfig::default() };
    let server = Running::start_with(engine_at(&fake, Style::VLLM), config).await;

    let _first = server.chat(&streaming()).await;
    let refused = server.chat(&streaming()).await;
    assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (503, &"5".parse().unwrap()));
    let error = &refused.json::<Value>().await.unwrap()["error"];
    assert_eq!(
        (error["code"].as_str(), error["message"].as_str()),
        (
            Some("queue_timeout"),
            Some(
                "no engine slot came free within 0.02 s. Try again later, or raise [server] max_in_flight or queue_timeout"
            )
        )
    );
}

#[tokio::test]
async fn a_client_that_hangs_up_makes_room_for_the_next() {
    let hold = Hold::new();
    let fake = first_held(&hold).await;
    let config = ServerConfig { max_in_flight: 1, max_waiting: 1, ..ServerConfig::default() };
    let server = Running::start_with(engine_at(&fake, Style::VLLM), config).await;

    let first = server.chat(&streaming()).await;
    drop(first);
    let second =
        tokio::time::timeout(PATIENCE, server.chat(&streaming())).await.expect("room for the second");
    assert!(second.text().await.unwrap().ends_with("data: [DONE]\n\n"));
}

#[tokio::test]
async fn a_head_that_never_ends_is_not_waited_for() {
    let header_timeout = Duration::from_millis(50);
    let server = scripted(ServerConfig { header_timeout, ..ServerConfig::default() }).await;
    for beginning in ["", "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nx-slow: "] {
        let mut raw = Raw::connect(&server).await;
        raw.send(beginning).await;
        assert_eq!(raw.rest().await, "");
    }
}

#[tokio::test]
async fn a_connection_that_idles_after_an_answer_is_closed() {
    // Time enough for our own request on a busy machine.
    let header_timeout = Duration::from_secs(1);
    let server = scripted(ServerConfig { header_timeout, ..ServerConfig::default() }).await;
    let mut raw = Raw::connect(&server).await;
    raw.send("GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    raw.until(r#"{"status":"ok"}"#).await;
    assert_eq!(raw.rest().await, "");
}

#[tokio::test]
async fn a_stream_may_take_longer_than_any_head() {
    let hold = Hold::new();
    let fake = first_held(&hold).await;
    // And long enough for our own request on a busy machine.
    let short = Duration::from_secs(1);
    let config = ServerConfig { header_timeout: short, body_timeout: short, ..ServerConfig::default() };
    let server = Running::start_with(engine_at(&fake, Style::VLLM), config).await;
    let mut slow = Raw::connect(&server).await;
    slow.send_chat(&streaming()).await;
    slow.until("hi").await;
    // A second connection runs into the same time-out while the stream is silent.
    assert_eq!(Raw::connect(&server).await.rest().await, "");
    hold.release();
    slow.until("[DONE]").await;
}

#[tokio::test]
async fn a_client_that_closes_its_side_has_hung_up() {
    let fake = first_held(&Hold::new()).await;
    let server = Running::start(engine_at(&fake, Style::VLLM)).await;
    let mut raw = Raw::connect(&server).await;
    raw.send_chat(&streaming()).await;
    raw.until("hi").await;
    raw.half_close().await;
    tokio::time::timeout(PATIENCE, fake.hung_up(1)).await.expect("the engine's request ends");
    assert!(!raw.rest().await.contains("[DONE]"));
}

#[tokio::test]
async fn http_1_0_is_answered_in_its_own_way() {
    let server = scripted(ServerConfig::default()).await;

    let mut raw = Raw::connect(&server).await;
    raw.send(post_chat("HTTP/1.0", &asking(json!({})))).await;
    let whole = raw.rest().await;
    assert!(whole.starts_with("HTTP/1.0 200 OK\r\n"), "{whole}");
    assert!(whole.contains("content-length: "), "{whole}");
    assert!(whole.ends_with('}'), "{whole}");

    let mut raw = Raw::connect(&server).await;
    raw.send(post_chat("HTTP/1.0", &streaming())).await;
    let stream = raw.rest().await;
    assert!(stream.starts_with("HTTP/1.0 200 OK\r\n"), "{stream}");
    assert!(!stream.contains("transfer-encoding"), "{stream}");
    assert!(!stream.contains("keep-alive"), "only its end ends it: {stream}");
    assert!(stream.ends_with("}\n\ndata: [DONE]\n\n"), "{stream}");

    let mut raw = Raw::connect(&server).await;
    raw.send("GET /health HTTP/1.0\r\n\r\n").await;
    assert!(raw.rest().await.ends_with(r#"{"status":"ok"}"#));
}

#[tokio::test]
async fn requests_sent_ahead_are_answered_in_order() {
    let server = scripted(ServerConfig::default()).await;
    let mut raw = Raw::connect(&server).await;
    let ahead = [
        post_chat("HTTP/1.1", &streaming()),
        "GET /nothing HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned(),
        post_chat("HTTP/1.1", &asking(json!({}))),
        "GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".to_owned(),
    ];
    raw.send(ahead.concat()).await;
    let answers = raw.rest().await;
    let mut rest = answers.as_str();
    for mark in ["[DONE]", "there is nothing at /nothing", "\"chat.completion\"", r#"{"status":"ok"}"#] {
        let (_, after) = rest.split_once(mark).unwrap_or_else(|| panic!("no {mark} in {rest}"));
        rest = after;
    }
    assert_eq!(rest, "");
}

#[tokio::test]
async fn what_is_no_http_is_turned_away_and_harms_nobody() {
    let server = scripted(ServerConfig::default()).await;
    let long_path = format!("GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n", "x".repeat(100_000));
    let long_head = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "x".repeat(1_000_000));
    let many_heads = format!("GET / HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(1000));
    let table: [(&[u8], &str); 6] = [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a TLS hello\r\n\r\n", "HTTP/1.1 400 "),
        (b"GET / HTTP/9.9\r\n\r\n", "HTTP/1.1 400 "),
        (b"POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n", "HTTP/1.1 400 "),
        (long_path.as_bytes(), "HTTP/1.1 414 "),
        (long_head.as_bytes(), "HTTP/1.1 431 "),
        (many_heads.as_bytes(), "HTTP/1.1 431 "),
    ];
    for (garbage, expected) in table {
        let mut raw = Raw::connect(&server).await;
        raw.send_what_is_taken(garbage).await;
        let answer = raw.rest().await;
        let shown = String::from_utf8_lossy(&garbage[..garbage.len().min(40)]).into_owned();
        assert!(answer.starts_with(expected), "{shown:?} → {answer:?}");
    }
    assert_eq!(server.chat(&asking(json!({}))).await.status(), 200);
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_cut_off_and_the_engine_let_go() {
    // More than the buffers of both connections hold, so that everybody has to wait for the client.
    let piece = chunk(&format!(r#"{{"content":"{}"}}"#, "x".repeat(64 << 10)));
    let endless = Reply::sse(piece.repeat(48 * 16)).in_packets_of(piece.len());
    let fake = FakeServer::start(move |request| match request.method.as_str() {
        "GET" => models(),
        _ => endless.clone(),
    })
    .await;
    let write_timeout = Duration::from_millis(100);
    let config = ServerConfig { write_timeout, ..ServerConfig::default() };
    let server = Running::start_with(engine_at(&fake, Style::VLLM), config).await;
    let mut deaf = Raw::connect(&server).await;
    deaf.send_chat(&streaming()).await;
    tokio::time::timeout(PATIENCE, fake.hung_up(1)).await.expect("the engine's request ends");
    assert!(!deaf.rest().await.contains("[DONE]"));
}

/// Begins a request whose body has this length, and waits until the server wants to have it.
pub async fn announcing(server: &Running, length: usize) -> Raw {
    let mut raw = Raw::connect(server).await;
    raw.send(format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\nexpect: 100-continue\r\n\r\n"
    ))
    .await;
    raw.until("HTTP/1.1 100 Continue\r\n\r\n").await;
    raw
}

#[tokio::test]
async fn large_bodies_have_so_much_room_in_all_and_small_ones_need_none() {
    let queue_timeout = Duration::from_millis(20);
    let server = scripted(ServerConfig { max_body_mb: 2, queue_timeout, ..ServerConfig::default() }).await;
    let large = asking(json!({ "user": "x".repeat((2 << 20) - 200) }));
    let mut under_way = Vec::new();
    // What is announced takes no room.
    for _ in 0..32 {
        under_way.push(announcing(&server, 2 << 20).await);
    }
    assert_eq!(server.chat(&large).await.status(), 200);
    under_way.truncate(16);
    for raw in &mut under_way {
        raw.send(vec![b' '; (2 << 20) - 1]).await;
    }
    // All of it is there as soon as the server has read it.
    let refused = async {
        loop {
            let answer = server.chat(&large).await;
            if answer.status() != 200 {
                return answer;
            }
        }
    };
    let refused = tokio::time::timeout(PATIENCE, refused).await.expect("there is no room for more");
    assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (503, &"5".parse().unwrap()));
    let error = &refused.json::<Value>().await.unwrap()["error"];
    assert_eq!(error["code"], "no_room", "{error}");
    assert_eq!(server.chat(&asking(json!({}))).await.status(), 200);

    // Whoever leaves makes room, as soon as the server has noticed.
    drop(under_way.pop());
    let made_room = async { while server.chat(&large).await.status() != 200 {} };
    tokio::time::timeout(PATIENCE, made_room).await.expect("room for one more");
}

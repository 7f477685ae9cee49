//! Large and slow bodies.

use std::time::Duration;

use hob_config::ServerConfig;
use serde_json::{Value, json};

use crate::client::{RawConnection, asking};
use crate::fixtures::scripted;
use crate::support::{TestServer, WAIT_LIMIT};

#[tokio::test]
async fn a_slow_body_does_not_hold_its_slot_for_long() {
    let body_timeout = Duration::from_millis(200);
    let server = scripted(ServerConfig { body_timeout, ..ServerConfig::default() }).await;
    let mut raw = RawConnection::connect(&server).await;
    // The first byte comes with the head: on a busy machine it could be too late, which is another error.
    raw.send(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: 1000000\r\n\r\n ",
    )
    .await;
    // No single pause is too long.
    let dripping = async {
        loop {
            raw.send_what_is_taken(b" ").await;
            tokio::time::sleep(Duration::from_millis(5)).await;
            if let Some(answer) = raw.ready().await {
                return answer;
            }
        }
    };
    let answer = tokio::time::timeout(WAIT_LIMIT, dripping).await.expect("it is given up");
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains("1024 bytes per second"), "{answer}");
    assert_eq!(server.chat(&asking(json!({}))).await.status(), 200);
}

/// Starts a request whose body has this length, and waits until the server asks for the body.
pub async fn announcing(server: &TestServer, length: usize) -> RawConnection {
    let mut raw = RawConnection::connect(server).await;
    raw.send(format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\nexpect: 100-continue\r\n\r\n"
    ))
    .await;
    raw.until("HTTP/1.1 100 Continue\r\n\r\n").await;
    raw
}

#[tokio::test]
async fn large_bodies_share_a_memory_limit_and_small_ones_do_not_count() {
    let queue_timeout = Duration::from_millis(20);
    let server = scripted(ServerConfig { max_body_mb: 2, queue_timeout, ..ServerConfig::default() }).await;
    let large = asking(json!({ "user": "x".repeat((2 << 20) - 200) }));
    let mut under_way = Vec::new();
    // An announced body uses no memory.
    for _ in 0..32 {
        under_way.push(announcing(&server, 2 << 20).await);
    }
    assert_eq!(server.chat(&large).await.status(), 200);
    under_way.truncate(16);
    for raw in &mut under_way {
        raw.send(vec![b' '; (2 << 20) - 1]).await;
    }
    // The memory is counted as soon as the server has read the body.
    let refused = async {
        loop {
            let answer = server.chat(&large).await;
            if answer.status() != 200 {
                return answer;
            }
        }
    };
    let refused = tokio::time::timeout(WAIT_LIMIT, refused).await.expect("there is no room for more");
    assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (503, &"5".parse().unwrap()));
    let error = &refused.json::<Value>().await.unwrap()["error"];
    assert_eq!(error["code"], "no_room", "{error}");
    assert_eq!(server.chat(&asking(json!({}))).await.status(), 200);

    // A client that disconnects frees its memory when the server notices it.
    drop(under_way.pop());
    let made_room = async { while server.chat(&large).await.status() != 200 {} };
    tokio::time::timeout(WAIT_LIMIT, made_room).await.expect("room for one more");
}

//! One address can use a quarter of the connections and of the memory for bodies.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hob_config::ServerConfig;
use hob_testkit::ScriptedEngine;
use serde_json::{Value, json};

use super::body::announcing;
use crate::client::{RawConnection, asking};
use crate::fixtures::reached_from_network;
use crate::support::WAIT_LIMIT;

const HEALTH: &str = "GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

#[tokio::test]
async fn one_address_gets_a_quarter_of_the_connections() {
    // 64 connections in total.
    let config = ServerConfig { max_in_flight: 16, max_waiting: 16, ..ServerConfig::default() };
    let server = reached_from_network(&Arc::new(ScriptedEngine::saying(&["hi"])), config).await;
    let mut idle = Vec::new();
    for _ in 0..16 {
        idle.push(RawConnection::connect(&server).await);
    }
    let refused = RawConnection::connect(&server).await.rest().await;
    assert!(refused.starts_with("HTTP/1.1 503 ") && refused.contains("retry-after: "), "{refused}");
    assert!(refused.contains("\r\nx-request-id: req_"), "{refused}");
    let words = "your address has too many connections already.\r\n";
    let end = format!("\r\ncontent-length: {}\r\n\r\n{words}", words.len());
    assert!(refused.ends_with(&end), "{refused}");

    // Callers on this machine are still served.
    let here = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), server.address.port());
    let mut owner = RawConnection::to(here).await;
    owner.send(HEALTH).await;
    assert!(owner.rest().await.ends_with(r#"{"status":"ok"}"#));

    idle.pop();
    let served = async {
        loop {
            let mut raw = RawConnection::connect(&server).await;
            raw.send_what_is_taken(HEALTH.as_bytes()).await;
            if raw.rest().await.ends_with(r#"{"status":"ok"}"#) {
                return;
            }
        }
    };
    tokio::time::timeout(WAIT_LIMIT, served).await.expect("a client that disconnects frees its connection");
}

#[tokio::test]
async fn one_address_gets_a_quarter_of_the_memory_for_bodies() {
    let queue_timeout = Duration::from_millis(20);
    let config = ServerConfig { max_body_mb: 2, queue_timeout, ..ServerConfig::default() };
    let mut server = reached_from_network(&Arc::new(ScriptedEngine::saying(&["hi"])), config).await;
    let large = asking(json!({ "user": "x".repeat((2 << 20) - 200) }));
    let mut under_way = Vec::new();
    for _ in 0..4 {
        under_way.push(announcing(&server, 2 << 20).await);
    }
    let refused = server.chat(&large).await;
    assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (429, &"5".parse().unwrap()));
    assert_eq!(refused.json::<Value>().await.unwrap()["error"]["code"], "no_room");
    assert_eq!(server.chat(&asking(json!({}))).await.status(), 200, "small ones need none");

    let outside = server.address;
    server.address.set_ip(Ipv4Addr::LOCALHOST.into());
    assert_eq!(server.chat(&large).await.status(), 200, "others have theirs");
    server.address = outside;
    under_way.pop();
    let made_room = async { while server.chat(&large).await.status() != 200 {} };
    tokio::time::timeout(WAIT_LIMIT, made_room).await.expect("room for one more");
}

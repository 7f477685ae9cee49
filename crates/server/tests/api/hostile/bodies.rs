//! Bodies that keep the server waiting.

use std::time::Duration;

use hob_config::ServerConfig;
use serde_json::json;

use super::serving;
use crate::client::{PATIENCE, Raw, asking};

#[tokio::test]
async fn a_body_that_drips_does_not_hold_its_place_for_long() {
    let body_timeout = Duration::from_millis(200);
    let server = serving(ServerConfig { body_timeout, ..ServerConfig::default() }).await;
    let mut raw = Raw::connect(&server).await;
    raw.send(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: 1000000\r\n\r\n",
    )
    .await;
    // Never a pause that is too long by itself.
    let dripping = async {
        loop {
            raw.send_what_is_taken(b" ").await;
            tokio::time::sleep(Duration::from_millis(5)).await;
            if let Some(answer) = raw.ready().await {
                return answer;
            }
        }
    };
    let answer = tokio::time::timeout(PATIENCE, dripping).await.expect("it is given up");
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains("1024 bytes a second"), "{answer}");
    assert_eq!(server.chat(&asking(json!({}))).await.status(), 200);
}

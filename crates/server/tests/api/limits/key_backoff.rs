//! Callers that guess keys.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hob_config::ServerConfig;
use hob_testkit::ScriptedEngine;
use serde_json::Value;

use crate::fixtures::{reached_from_network, scripted};
use crate::support::{TestServer, WAIT_LIMIT};

fn keyed() -> ServerConfig {
    ServerConfig { api_key: Some("s3cret".to_owned().into()), ..ServerConfig::default() }
}

async fn try_key(server: &TestServer, key: &str) -> reqwest::Response {
    server.client.get(server.url("/v1/models")).bearer_auth(key).send().await.unwrap()
}

#[tokio::test]
async fn a_network_caller_that_guesses_keys_has_to_wait() {
    let server = reached_from_network(&Arc::new(ScriptedEngine::saying(&["hi"])), keyed()).await;
    for _ in 0..20 {
        let nothing = server.client.get(server.url("/v1/models")).send().await.unwrap();
        assert_eq!(nothing.status(), 401, "sending none is no guess");
    }
    let mut refused = None;
    for number in 0..20 {
        let answer = try_key(&server, &format!("guess-{number}")).await;
        match answer.status().as_u16() {
            401 => {}
            429 => {
                refused = Some((number, answer));
                break;
            }
            other => panic!("{other}"),
        }
    }
    let (number, answer) = refused.expect("the caller must wait");
    assert_eq!(number, 10);
    let wait: u64 = answer.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=2).contains(&wait), "{wait}");
    assert_eq!(answer.json::<Value>().await.unwrap()["error"]["code"], "too_many_wrong_keys");
    // A correct guess must not be recognisable, or the delay would have no effect.
    assert_eq!(try_key(&server, "s3cret").await.status(), 429);
    let after = async {
        while try_key(&server, "s3cret").await.status() != 200 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(WAIT_LIMIT, after).await.expect("after the wait the right key is right");
}

#[tokio::test]
async fn the_owner_on_this_machine_is_never_locked_out() {
    let server = scripted(keyed()).await;
    for number in 0..10 {
        assert_eq!(try_key(&server, &format!("guess-{number}")).await.status(), 401);
    }
    // From now on wrong keys are answered late, but the right one immediately.
    let began = Instant::now();
    let late = try_key(&server, "guess");
    let right = async {
        assert_eq!(try_key(&server, "s3cret").await.status(), 200);
        began.elapsed()
    };
    let (late, right) = tokio::join!(late, right);
    assert_eq!(late.status(), 401);
    assert!(began.elapsed() >= Duration::from_secs(1));
    assert!(right < began.elapsed(), "{right:?}");
}

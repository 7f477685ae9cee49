//! Bodies that are small on the wire and large in memory.

#![cfg(target_os = "linux")]

use hob_core::request_budget::{BODY_VALUES, EXTRA_VALUES};
use serde_json::{Value, json};

use crate::fixtures::scripted;
use crate::support::TestServer;

const MIB: usize = 1 << 20;
/// Large enough that a hundred bytes per value would be noticed.
const SIZE: usize = 8 * MIB;

/// Posts a body and returns the answer, and by how much the peak memory of the process grew
/// meanwhile.
async fn post(server: &TestServer, path: &str, body: Vec<u8>) -> (u16, Value, usize) {
    // Resets the peak if the kernel allows it; otherwise an earlier peak may hide a part of this one.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let before = peak();
    // Each on a connection of its own: one that the server is about to close fails the next request.
    let request = server.client.post(server.url(path)).header("connection", "close");
    let request = request.header("content-type", "application/json").body(body);
    // A route that is not configured answers before it reads the body, so the client may only see a closed connection.
    let Ok(response) = request.send().await else {
        return (503, Value::Null, peak().saturating_sub(before));
    };
    let (status, answer) = (response.status().as_u16(), response.json().await.unwrap());
    // The kernel counts in batches, so a peak may seem to decrease.
    (status, answer, peak().saturating_sub(before))
}

/// The peak memory of this process so far.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

/// `before`, as many zeros as fit, `after`.
fn zeros(before: &str, after: &str) -> Vec<u8> {
    let count = (SIZE - before.len() - after.len()) / 2;
    format!("{before}0{}{after}", ",0".repeat(count)).into_bytes()
}

#[tokio::test]
async fn a_body_of_millions_of_values_costs_no_more_than_ten_times_its_size() {
    let server = scripted(hob_config::ServerConfig::default()).await;
    let message = r#"{"model":"m","messages":[{"role":"user","content":"hi"}]"#;
    for (path, body) in [
        ("/v1/chat/completions", zeros(&format!(r#"{message},"unknown":["#), "]}")),
        ("/v1/chat/completions", zeros(r#"{"model":"m","messages":["#, "]}")),
        ("/v1/channels/send", zeros(r#"{"channel":["#, "]}")),
        ("/v1/memory/search", zeros(r#"{"query":"a","unknown":["#, "]}")),
    ] {
        let (status, answer, grown) = post(&server, path, body).await;
        let is_set_up = path == "/v1/chat/completions";
        if is_set_up || status != 503 {
            assert_eq!(status, 400, "{path}: {answer}");
            let limit = hob_core::request_budget::thousands(BODY_VALUES);
            let expected = format!("the request body has too many JSON values; the limit is {limit}");
            assert_eq!(answer["detail"], expected.as_str(), "{path}");
        }
        assert!(grown <= 10 * SIZE, "{path}: {} MiB", grown / MIB);
    }
    for (body, expected) in [
        (zeros(r#"{"model":"m","input":["#, "]}"), "input has 4,194,"),
        (zeros(r#"{"model":"m","input":[["#, "]]}"), "input has 4,194,"),
        (zeros(r#"{"input":"a","unknown":["#, "]}"), "'model' is required"),
    ] {
        let (status, answer, grown) = post(&server, "/v1/embeddings", body).await;
        assert_eq!(status, 400, "{answer}");
        assert!(answer["detail"].as_str().unwrap().starts_with(expected), "{answer}");
        assert!(grown <= 10 * SIZE, "{} MiB", grown / MIB);
    }
}

#[tokio::test]
async fn a_large_body_at_the_limit_of_values_is_answered() {
    let server = scripted(hob_config::ServerConfig::default()).await;
    // A message is four values; the other fields are few.
    let messages = vec![json!({ "role": "user", "content": "x", "name": "y" }); 19_000];
    let text = "x".repeat(SIZE - 2 * MIB);
    let body =
        json!({ "model": "m", "messages": messages, "user": text, "unknown": vec![0; EXTRA_VALUES - 10] });
    let (status, answer, grown) =
        post(&server, "/v1/chat/completions", serde_json::to_vec(&body).unwrap()).await;
    assert_eq!(status, 200, "{answer}");
    assert!(grown <= 10 * SIZE, "{} MiB", grown / MIB);
}

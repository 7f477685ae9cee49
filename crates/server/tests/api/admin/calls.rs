//! `GET /v1/calls`.

use std::time::{Duration, SystemTime};

use hob_core::FinishReason;
use hob_keys::KeyRole;
use hob_telemetry::{CallDetails, Inference, InferenceEnd};
use reqwest::Method;
use serde_json::{Value, json};

use super::openapi::{assert_fits, document_of};
use super::savings::call;
use super::usage::TeamParts;
use crate::fixtures::{loopback_config, parts_reached_from_network};
use crate::key_fixtures::{get, message, send};

fn column<'a>(page: &'a Value, name: &str) -> Vec<&'a Value> {
    page["data"].as_array().unwrap().iter().map(|call| &call[name]).collect()
}

#[tokio::test]
async fn a_call_is_listed_with_its_request_and_found_by_its_id() {
    let team = TeamParts::open();
    let ana = team.create("ana", KeyRole::Member, json!({})).await;
    let server = team.start(loopback_config()).await;
    for (path, id, body) in [
        ("/v1/chat/completions", "req-one", json!({ "messages": [{ "role": "user", "content": "hi" }] })),
        ("/api/generate", "req-two", json!({ "prompt": "hi", "stream": false })),
    ] {
        let mut body = body;
        body["model"] = json!("qwen3:8b");
        let request = server.client.post(server.url(path)).bearer_auth(&ana).header("x-request-id", id);
        assert_eq!(request.json(&body).send().await.unwrap().status(), 200, "{path}");
    }
    let (status, page) = get(&server, "/v1/calls", "").await;
    assert_eq!(status, 200, "{page}");
    assert_fits(&document_of(&server).await, "CallList", &page);
    assert_eq!(column(&page, "request_id"), ["req-two", "req-one"]);
    assert_eq!(column(&page, "route"), ["/api/generate", "/v1/chat/completions"]);
    assert_eq!(column(&page, "key"), ["ana", "ana"]);
    assert!(column(&page, "queue_seconds").iter().all(|wait| wait.as_f64().is_some()), "{page}");
    assert_eq!((&page["next"], page.get("message")), (&Value::Null, None));

    let (_, found) = get(&server, "/v1/calls?request=req-one", "").await;
    assert_eq!(column(&found, "request_id"), ["req-one"]);
    let run = found["data"][0]["run"].as_str().unwrap();
    let (_, same) = get(&server, &format!("/v1/calls?request={run}"), "").await;
    assert_eq!(same, found);
}

#[tokio::test]
async fn calls_come_in_pages_and_filters_apply_to_all_of_them() {
    let team = TeamParts::open();
    let now = SystemTime::now();
    // Three begin in the same microsecond.
    let calls: Vec<Inference> = (0..9_u64)
        .map(|number| {
            let ending = match number % 3 {
                0 => InferenceEnd::Failed(format!("reason {number}")),
                _ => InferenceEnd::Complete(FinishReason::Stop),
            };
            Inference {
                started: now - Duration::from_secs(number / 3),
                run: format!("run-{number}").into(),
                model: if number < 5 { "small" } else { "large" }.into(),
                ..call(None, Some(ending))
            }
        })
        .collect();
    team.record.store().unwrap().record_batch(&calls, team.record.prices()).unwrap();
    let server = team.start(loopback_config()).await;
    let mut runs = Vec::new();
    let mut path = "/v1/calls?limit=2".to_owned();
    loop {
        let (status, page) = get(&server, &path, "").await;
        assert_eq!(status, 200, "{page}");
        assert!(column(&page, "run").len() <= 2);
        runs.extend(column(&page, "run").into_iter().map(|run| run.as_str().unwrap().to_owned()));
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/v1/calls?limit=2&after={next}");
    }
    let mut sorted = runs.clone();
    sorted.sort();
    assert_eq!(sorted, (0..9).map(|number| format!("run-{number}")).collect::<Vec<_>>());
    let group = |run: &String| run.trim_start_matches("run-").parse::<u64>().unwrap() / 3;
    assert!(runs.is_sorted_by_key(group), "newest first: {runs:?}");

    let (_, failed) = get(&server, "/v1/calls?outcome=failed", "").await;
    assert_eq!(column(&failed, "error"), ["reason 0", "reason 3", "reason 6"]);
    let (_, both) = get(&server, "/v1/calls?outcome=failed&model=large", "").await;
    assert_eq!(column(&both, "error"), ["reason 6"]);
    let (_, none) = get(&server, "/v1/calls?key=ana", "").await;
    assert_eq!((column(&none, "run").len(), &none["next"]), (0, &Value::Null));
    let (_, unnamed) = get(&server, "/v1/calls?key=", "").await;
    assert_eq!(column(&unnamed, "run").len(), 9);
}

#[tokio::test]
async fn a_member_sees_its_own_calls_without_the_owners_machines() {
    let team = TeamParts::open();
    let ana = team.create("ana", KeyRole::Member, json!({})).await;
    let of = |key: Option<&str>| Inference {
        key: key.map(Into::into),
        details: CallDetails { host: Some("http://10.0.0.7:8000".into()), ..CallDetails::default() },
        ..call(None, Some(InferenceEnd::Failed("http://10.0.0.7:8000 refused".to_owned())))
    };
    let calls = [of(Some("ana")), of(Some("ben")), of(None)];
    team.record.store().unwrap().record_batch(&calls, team.record.prices()).unwrap();
    let server = parts_reached_from_network(team.of_server(), loopback_config()).await;
    for path in ["/v1/calls", "/v1/calls?key=ben", "/v1/calls?key="] {
        let (status, page) = get(&server, path, &ana).await;
        assert_eq!((status, column(&page, "key")), (200, vec![&json!("ana")]), "{path}");
        assert!(!page.to_string().contains("10.0.0.7"), "{page}");
    }
}

#[tokio::test]
async fn a_page_counts_as_a_request_of_a_member() {
    let team = TeamParts::open();
    let ana = team.create("ana", KeyRole::Member, json!({ "requests_per_minute": 1 })).await;
    let server = parts_reached_from_network(team.of_server(), loopback_config()).await;
    let mut statuses = Vec::new();
    // A new minute can begin between two of them, but not between all.
    for _ in 0..4 {
        statuses.push(get(&server, "/v1/calls", &ana).await.0);
    }
    assert_eq!(statuses[0], 200);
    assert!(statuses.contains(&429), "{statuses:?}");
}

#[tokio::test]
async fn a_wrong_parameter_is_refused_by_name() {
    let team = TeamParts::open();
    let server = team.start(loopback_config()).await;
    let long = format!("/v1/calls?model={}", "x".repeat(300));
    for (path, param) in [
        ("/v1/calls?limit=0", "limit"),
        ("/v1/calls?limit=201", "limit"),
        ("/v1/calls?after=yesterday", "after"),
        (&*long, "model"),
    ] {
        let (status, error) = get(&server, path, "").await;
        assert_eq!((status, &error["error"]["param"]), (400, &json!(param)), "{error}");
    }
    let response = send(&server, Method::GET, "/v1/calls?outcome=odd", "", None).await;
    let status = response.status();
    let error: Value = response.json().await.unwrap();
    assert!(status == 400 && message(&error).contains("unknown variant"), "{error}");
}

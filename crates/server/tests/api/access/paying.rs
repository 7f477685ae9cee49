//! Tasks and agents spend from the key that made them.

use std::sync::Arc;
use std::time::Duration;

use hob_core::Engine;
use hob_keys::AuditActor;
use serde_json::{Value, json};

use super::{Team, get, key_name, post};
use crate::client::asking;
use crate::fixtures::{calculating, loopback_config, parts};
use crate::support::{TestServer, WAIT_LIMIT};

fn yearly(fields: Value) -> Value {
    let mut task = json!({ "prompt": "say hi", "schedule_type": "interval", "schedule_value": "31536000" });
    for (name, value) in fields.as_object().unwrap() {
        task[name] = value.clone();
    }
    task
}

/// Runs a task, and returns its run when it has ended.
async fn run(server: &TestServer, task: &Value, key: &str) -> Value {
    let path = format!("/v1/tasks/{}", task["id"].as_str().unwrap());
    let (status, started) = post(server, &format!("{path}/run"), key, &json!({})).await;
    assert_eq!(status, 202, "{started}");
    let ended = async {
        loop {
            let (_, logs) = get(server, &format!("{path}/logs"), key).await;
            if logs["logs"][0]["outcome"] != "running" {
                return logs["logs"][0].clone();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(WAIT_LIMIT, ended).await.unwrap()
}

#[tokio::test]
async fn a_task_of_a_member_spends_from_its_key_until_the_budget_is_used_up() {
    let team = Team::new();
    let server = TestServer::start_parts(team.parts(), loopback_config()).await;
    let ana = team.member("ana", json!({ "budgets": ["2k tokens/month"] })).await;
    let (status, task) = post(&server, "/v1/tasks", &ana, &yearly(json!({}))).await;
    assert_eq!((status, &task["key"]), (201, &json!("ana")), "{task}");
    assert_eq!(run(&server, &task, &ana).await["outcome"], "succeeded");
    // What the engine says: 3 tokens read, 2 written.
    assert_eq!(team.used("ana").await, 5);
    let less = serde_json::from_value(json!({ "budgets": ["6 tokens/month"] })).unwrap();
    team.keys.patch(&key_name("ana"), less, AuditActor::terminal()).await.unwrap();
    let refused = run(&server, &task, &ana).await;
    assert_eq!(refused["outcome"], "failed", "{refused}");
    assert!(refused["error"].as_str().unwrap().contains("the budget of the key 'ana'"), "{refused}");
    assert_eq!(team.used("ana").await, 5);
}

#[tokio::test]
async fn the_owner_may_let_a_key_pay_for_a_task_and_a_member_only_itself() {
    let team = Team::new();
    let server = TestServer::start_parts(team.parts(), loopback_config()).await;
    let ana = team.member("ana", json!({ "budgets": ["2k tokens/month"] })).await;
    let ben = team.member("ben", json!({})).await;
    let (status, task) = post(&server, "/v1/tasks", "", &yearly(json!({ "key": "ana" }))).await;
    assert_eq!((status, &task["key"]), (201, &json!("ana")), "{task}");
    assert_eq!(run(&server, &task, "").await["outcome"], "succeeded");
    assert_eq!(team.used("ana").await, 5);
    let path = format!("/v1/tasks/{}", task["id"].as_str().unwrap());
    assert_eq!(get(&server, &path, &ana).await.0, 200, "who pays sees the task");
    assert_eq!(get(&server, &path, &ben).await.0, 404);
    let (status, body) = post(&server, "/v1/tasks", "", &yearly(json!({ "key": "nora" }))).await;
    assert_eq!((status, &body["error"]["param"]), (400, &json!("key")), "{body}");
    assert_eq!(post(&server, "/v1/tasks", &ben, &yearly(json!({ "key": "ana" }))).await.0, 403);
    assert_eq!(post(&server, "/v1/tasks", &ben, &yearly(json!({ "key": "ben" }))).await.0, 201);
}

#[tokio::test]
async fn every_turn_of_an_agent_spends_from_the_key_of_the_request() {
    let team = Team::new();
    let server =
        TestServer::start_parts(team.parts_with(parts(calculating() as Arc<dyn Engine>)), loopback_config())
            .await;
    let ana = team.member("ana", json!({ "budgets": ["20k tokens/month"] })).await;
    for (fields, used) in [
        (json!({ "agent": "orchestrator" }), 38),
        (json!({ "agent": "orchestrator", "stream": true }), 2 * 38),
    ] {
        let (status, body) = post(&server, "/v1/chat/completions", &ana, &asking(fields)).await;
        assert_eq!(status, 200, "{body}");
        // The call of the tool (10 and 3 tokens), and the answer (20 and 5).
        assert_eq!(team.used("ana").await, used);
    }
}

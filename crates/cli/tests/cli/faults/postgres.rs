//! A PostgreSQL whose connections hang, close, garble, slow down or half-close.

use std::time::Duration;

use hob_testkit::{ConnectionFault, FaultyProxy, PostgresServer};
use reqwest::Method;
use serde_json::json;

use super::client::Client;
use super::report;
use crate::home::{Home, engines_config};
use crate::replicas::engine::{EngineLog, prompt};
use crate::running::Running;

/// Longer than a request waits for the database. Only a failure takes as long.
const LIMIT: Duration = Duration::from_secs(120);

/// Creates a task; whether that was acknowledged.
async fn create_task(client: &Client, acknowledged: &mut Vec<String>) -> bool {
    let task = json!({ "schedule_type": "interval", "schedule_value": 3600, "prompt": "Hello" });
    let answer = client.send(Method::POST, "/v1/tasks", Some(&task)).await;
    let Some(answer) = answer.filter(|answer| answer.is_success()) else { return false };
    acknowledged.push(answer.body["id"].as_str().expect("an id").to_owned());
    true
}

async fn ask(client: &Client, subject: &str) {
    let messages = json!([{ "role": "user", "content": prompt(subject) }]);
    let body = json!({ "model": "default", "agent": "none", "messages": messages });
    let asked = client.send(Method::POST, "/v1/chat/completions", Some(&body));
    let answer = tokio::time::timeout(LIMIT, asked).await.expect("in time").expect("the server runs");
    assert_eq!(answer.status, 200, "chats need no database: {answer:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes: ./dev test --faults"]
async fn a_server_outlives_every_fault_of_its_database_and_loses_nothing() {
    let mut figure = report("postgresql", "faults");
    let postgres = tokio::task::block_in_place(PostgresServer::start);
    let database = postgres.create_database();
    let proxy = FaultyProxy::start(&postgres.tcp_url(&database)).await;
    let engines = EngineLog::default();
    let engine = engines.start(0).await;
    let home = Home::with_config(&engines_config(&[("vllm", &engine.url())]));
    let mut command = home.hob(&["serve", "--port", "0"]);
    command.env("HOB_DATABASE_URL", proxy.url());
    let server = Running::of(command).await;
    let client = Client::of(server.address());
    let mut acknowledged = Vec::new();
    assert!(create_task(&client, &mut acknowledged).await, "the database is good");

    for fault in ConnectionFault::ALL {
        eprintln!("the database: {fault:?}");
        proxy.set(Some(fault));
        figure.count += 1;
        ask(&client, "duringq").await;
        // It may fail, but it ends.
        let created = create_task(&client, &mut acknowledged);
        tokio::time::timeout(LIMIT, created).await.unwrap_or_else(|_| panic!("{fault:?}: no answer"));
        proxy.set(None);
        let recovered = async {
            while !create_task(&client, &mut acknowledged).await {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        };
        tokio::time::timeout(LIMIT, recovered).await.unwrap_or_else(|_| panic!("{fault:?}: not over"));
    }
    for id in &acknowledged {
        client.get(&format!("/v1/tasks/{id}")).await.expect("what was acknowledged is there");
    }
    let ended = server.terminate().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

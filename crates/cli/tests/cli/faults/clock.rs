//! A clock that jumps while the scheduler works.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use super::client::Client;
use super::report;
use super::tools::clock_library;
use crate::home::{Home, engines_config};
use crate::replicas::engine::{EngineLog, prompt};
use crate::running::Running;

const DAY: i64 = 86_400;

/// Longer than the minute after which a clock counts as steady. Only a failure takes as long.
const LIMIT: Duration = Duration::from_secs(240);

async fn runs(client: &Client, task: &str) -> Vec<Value> {
    let logs = client.get(&format!("/v1/tasks/{task}/logs?limit=10000")).await.expect("the task is there");
    logs["logs"].as_array().expect("a list").clone()
}

/// Waits until the task has run this many times more.
async fn more_runs(client: &Client, task: &str, count: usize) {
    let enough = runs(client, task).await.len() + count;
    let wait = async {
        while runs(client, task).await.len() < enough {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(LIMIT, wait).await.expect("the task runs again");
}

#[tokio::test]
#[ignore = "takes minutes: ./dev test --faults"]
async fn tasks_run_once_for_each_slot_when_the_clock_jumps_forth_and_back() {
    let mut figure = report("clock", "runs of a task");
    let engines = EngineLog::default();
    let engine = engines.start(0).await;
    let scheduler = "[scheduler]\nenabled = true\npoll_interval = 1.0\n";
    let home = Home::with_config(&format!("{}{scheduler}", engines_config(&[("vllm", &engine.url())])));
    let path = home.documents().join("clock");
    std::fs::write(&path, 0_i64.to_ne_bytes()).expect("a file");
    let clock = File::options().write(true).open(&path).expect("a file");
    let set = |seconds: i64| clock.write_all_at(&seconds.to_ne_bytes(), 0).expect("written");

    let mut command = home.hob(&["serve", "--port", "0"]);
    command.env("LD_PRELOAD", clock_library()).env("HOB_TEST_CLOCK", &path);
    let server = Running::of(command).await;
    let client = Client::of(server.address());
    let task = json!({ "schedule_type": "interval", "schedule_value": 2, "prompt": prompt("tickq") });
    let created = client.created(Method::POST, "/v1/tasks", &task).await.expect("it runs");
    let task = created["id"].as_str().expect("an id").to_owned();
    more_runs(&client, &task, 2).await;
    for seconds in [100, 0, DAY, 0, -DAY, 0] {
        eprintln!("the clock is wrong by {seconds} s");
        set(seconds);
        more_runs(&client, &task, 2).await;
    }

    let body = json!({});
    client.created(Method::POST, &format!("/v1/tasks/{task}/pause"), &body).await.expect("it runs");
    let settled = async {
        while runs(&client, &task).await.iter().any(|run| run["outcome"] == "running") {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(LIMIT, settled).await.expect("the last run ends");
    let runs = runs(&client, &task).await;
    figure.count = runs.len();
    let slots: BTreeSet<String> = runs.iter().map(|run| run["slot"].to_string()).collect();
    assert_eq!(slots.len(), runs.len(), "a slot ran twice: {runs:?}");
    let calls = engines.calls().iter().filter(|call| call.subject == "tickq").count();
    assert_eq!(calls, runs.len(), "every run asked the engine once: {runs:?}");
    let ended = server.terminate().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

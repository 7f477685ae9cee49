//! Three replicas behind nginx with one PostgreSQL: replicas are killed, the database restarts, and nothing is lost or done twice.
//!
//! `HOB_TEST_SEED` repeats the choices of a run, and `HOB_TEST_ROUNDS` is the number of rounds of faults of the long test.

mod budget;
mod checks;
mod cluster;
pub mod engine;
mod faults;
mod keys;
mod load;
mod messages;
mod nginx;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use fastrand::Rng;
use hob_testkit::{Gateway, GatewayScript};
use serde_json::{Value, json};

use budget::Budget;
use checks::{Evidence, TaskRuns};
use cluster::Cluster;
use engine::EngineLog;
use faults::Outage;
use load::{Answer, Client, Load, lock};

/// The least number of operations of a client.
const OPERATIONS: usize = 40;

/// Tasks that run every second.
const TICKING: usize = 3;

/// The least number of messages and of indexed files.
const MESSAGES: usize = 15;
const FILES: usize = 4;

/// Longer than a lease, after which an interrupted run is recorded.
const SETTLING: Duration = Duration::from_secs(300);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_done_twice_when_replicas_are_killed_and_the_database_restarts() {
    survive(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes: HOB_TEST_ROUNDS=20 cargo nextest run --run-ignored only for_many_rounds"]
async fn nothing_is_lost_or_done_twice_for_many_rounds() {
    survive(number("HOB_TEST_ROUNDS").unwrap_or(20)).await;
}

fn number<T: std::str::FromStr>(variable: &str) -> Option<T> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")))
}

async fn survive(rounds: usize) {
    let seed = number("HOB_TEST_SEED").unwrap_or_else(|| fastrand::u64(..));
    eprintln!("HOB_TEST_SEED={seed} repeats this run");
    let mut rng = Rng::with_seed(seed);
    let engines = EngineLog::default();
    let gateway = Gateway::start(GatewayScript::default()).await;
    let mut cluster = Cluster::start(engines.clone(), &gateway).await;
    let load = Load::new(cluster.url());
    let documents = tempfile::tempdir().expect("a directory");
    let budget = Budget::start(&cluster, rounds).await;
    for index in 0..TICKING {
        let every_second = || json!({ "schedule_type": "interval", "schedule_value": 1 });
        let created = load.create(&format!("tick{index}q"), &every_second).await;
        assert!(created.is_some(), "nothing has failed yet:\n{}", cluster.logs());
    }

    let kinds = [Client::Talker, Client::Talker, Client::Any, Client::Any, Client::Any, Client::Any];
    let clients = futures::future::join_all(kinds.map(|kind| load.work(OPERATIONS, kind, rng.fork())));
    let indexing = index_files(cluster.command_line(), &load, documents.path());
    let talking = messages::converse(&gateway, &load, MESSAGES);
    let spending = budget.spend(&load);
    let injecting = async {
        let outages = faults::inject(&mut cluster, &load, rounds, &mut rng).await;
        load.is_over.store(true, Ordering::Relaxed);
        outages
    };
    let (outages, _, failed_indexing, sent, over_budget) =
        tokio::join!(injecting, clients, indexing, talking, spending);

    let mut wrong = check_indexing(&failed_indexing, &outages);
    let tasks = settle(&load, &mut wrong).await;
    wrong.extend(check_acknowledged(&load).await);
    cluster.stop_replicas().await;
    let export = cluster.command_line().run(&["telemetry", "export"]).await;
    let records: Vec<Value> = serde_json::from_str(&export.stdout)
        .unwrap_or_else(|_| panic!("no records: {}\n{}", export.stderr, cluster.logs()));

    let evidence =
        Evidence { calls: engines.calls(), lives: cluster.lives.clone(), outages: outages.clone() };
    let exchanges = lock(&load.exchanges).clone();
    let (excused, failed) = evidence.failed_requests(&exchanges);
    wrong.extend(failed);
    wrong.extend(tasks.iter().flat_map(|task| evidence.runs(task)));
    wrong.extend(budget.check(&cluster, &evidence, &outages).await);
    wrong.extend(evidence.messages(&gateway.frames(), sent));
    let (lost, unrecorded) = evidence.telemetry(&records, &lock(&load.answered));
    wrong.extend(unrecorded);
    eprintln!(
        "{} requests, {excused} failed with their replica, {} repeated without the database; {} calls, {lost} of killed processes not \
         recorded; {} runs of {} tasks; {sent} messages; {over_budget} questions over the budget; {} processes, {} outages",
        exchanges.len(),
        load.refused.load(Ordering::Relaxed),
        evidence.calls.len(),
        tasks.iter().map(|task| task.runs.len()).sum::<usize>(),
        tasks.len(),
        evidence.lives.len(),
        outages.len(),
    );
    assert!(wrong.is_empty(), "HOB_TEST_SEED={seed}\n{}\n{}", wrong.join("\n"), cluster.logs());
}

/// Indexes files with the command line, as on another machine. Returns what failed.
async fn index_files(
    hob: cluster::CommandLine,
    load: &Load,
    directory: &std::path::Path,
) -> Vec<(Outage, String)> {
    let mut failed = Vec::new();
    let mut number = 0;
    while number < FILES || !load.is_over.load(Ordering::Relaxed) {
        let word = format!("crane{number}q");
        let file = directory.join(format!("{word}.txt"));
        std::fs::write(&file, format!("The {word} flies over the marsh.")).expect("a file");
        let began = Instant::now();
        let ran = hob.run(&["memory", "index", file.to_str().expect("text")]).await;
        if ran.code == Some(0) {
            lock(&load.acknowledged).words.push(word);
            number += 1;
        } else {
            failed.push(((began, Instant::now()), ran.stderr));
        }
    }
    failed
}

/// A command fails only while the database is away.
fn check_indexing(failed: &[(Outage, String)], outages: &[Outage]) -> Vec<String> {
    let is_excused = |(began, ended): &Outage| {
        outages.iter().any(|(stopped, started)| began <= started && stopped <= ended)
    };
    let wrong = failed.iter().filter(|(time, _)| !is_excused(time));
    wrong.map(|(_, stderr)| format!("a file was not indexed: {stderr}")).collect()
}

/// Pauses the tasks that repeat, and waits until all runs have ended.
async fn settle(load: &Load, wrong: &mut Vec<String>) -> Vec<TaskRuns> {
    let deadline = Instant::now() + SETTLING;
    let tasks = lock(&load.acknowledged).tasks.clone();
    for (id, subject) in &tasks {
        if subject.starts_with("tick") && load.post_empty(&format!("/v1/tasks/{id}/pause")).await.is_none() {
            wrong.push(format!("{subject} cannot be paused"));
        }
    }
    let mut settled = Vec::new();
    for (id, subject) in tasks {
        loop {
            let logs = load.get(&format!("/v1/tasks/{id}/logs?limit=10000")).await;
            let Some(Answer { text: logs, .. }) = logs else {
                wrong.push(format!("the task of {subject} is lost"));
                break;
            };
            let logs: Value = serde_json::from_str(&logs).expect("JSON");
            let runs = logs["logs"].as_array().expect("a list").clone();
            if !runs.is_empty() && runs.iter().all(|run| run["outcome"] != "running") {
                settled.push(TaskRuns { subject, runs });
                break;
            }
            if Instant::now() > deadline {
                wrong.push(format!("{subject} was lost, or does not end: {runs:?}"));
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    settled
}

/// What was acknowledged is there. Requests that fail are counted with the others.
async fn check_acknowledged(load: &Load) -> Vec<String> {
    let (responses, words) = {
        let acknowledged = lock(&load.acknowledged);
        (acknowledged.responses.clone(), acknowledged.words.clone())
    };
    let mut wrong = Vec::new();
    for (id, output) in responses {
        let stored = load.get(&format!("/v1/responses/{id}")).await;
        let stored = stored.and_then(|answer| serde_json::from_str::<Value>(&answer.text).ok());
        if stored.as_ref().map(|response| response["output"].to_string()).as_ref() != Some(&output) {
            wrong.push(format!("{id} is {stored:?} instead of {output}"));
        }
    }
    for word in words {
        load.find(&word).await;
    }
    wrong
}

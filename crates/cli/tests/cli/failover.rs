//! A PostgreSQL with a standby: the primary is killed, the standby is promoted, and two servers continue by themselves.

use std::collections::BTreeSet;

use hob_testkit::PostgresServer;
use serde_json::Value;

use crate::fakes;
use crate::home::Home;
use crate::http::get;
use crate::postgres::{
    POLL, Private, ask, assert_away, assert_secret, body_of, create_task, eventually, home_on, json_of, read,
};
use crate::running::Running;

/// Waits until both servers listen for changes on this PostgreSQL.
async fn listening(server: &PostgresServer) {
    let count = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN %'";
    while server.query(count).parse::<usize>().expect("a number") < 2 {
        tokio::time::sleep(POLL).await;
    }
}

async fn runs(home: &Home, task: &str) -> Vec<Value> {
    let logs = json_of(home, &["scheduler", "logs", task, "-n", "10000", "--json"]).await;
    logs.as_array().expect("a list").clone()
}

/// Waits until the log of a task has so many runs.
async fn has_run(home: &Home, task: &str, count: usize) {
    while runs(home, task).await.len() < count {
        tokio::time::sleep(POLL).await;
    }
}

#[tokio::test]
async fn a_standby_that_is_promoted_replaces_the_primary_without_a_restart_of_hob() {
    let mut primary = Private::start();
    let standby = primary.server.start_standby();
    let url = primary.server.failover_url(&standby, &primary.database);
    let ollama = fakes::ollama().await;
    let homes = [home_on(&ollama, &url), home_on(&ollama, &url)];
    let servers = [Running::start(&homes[0], &[]).await, Running::start(&homes[1], &[]).await];
    let addresses = servers.each_ref().map(|server| server.address().to_owned());
    let mut acknowledged = Vec::new();
    for address in &addresses {
        let created = eventually(address, "201", create_task).await;
        acknowledged.push(body_of(&created)["id"].as_str().expect("an id").to_owned());
    }
    let every_second = [
        "scheduler",
        "create",
        "Capital?",
        "--type",
        "interval",
        "--value",
        "1",
        "--agent",
        "none",
        "--json",
    ];
    let task = json_of(&homes[0], &every_second).await;
    let task = task["id"].as_str().expect("an id");
    has_run(&homes[1], task, 2).await;
    listening(&primary.server).await;

    primary.server.kill();
    for address in &addresses {
        ask(address).await;
        assert_away(&eventually(address, "503", create_task).await);
        assert_away(&read(get(address, "/v1/tasks").await).await);
        ask(address).await;
    }

    standby.promote();
    for address in &addresses {
        let created = eventually(address, "201", create_task).await;
        acknowledged.push(body_of(&created)["id"].as_str().expect("an id").to_owned());
        let listed = read(get(address, "/v1/tasks").await).await;
        assert_eq!(listed.status, "200");
        let listed = body_of(&listed).to_string();
        assert!(
            acknowledged.iter().all(|id| listed.contains(id)),
            "{acknowledged:?} are not all in {listed}"
        );
    }
    listening(&standby).await;
    let before = runs(&homes[1], task).await.len();
    has_run(&homes[1], task, before + 2).await;
    assert_eq!(homes[1].run(&["scheduler", "cancel", task]).await.code, Some(0));
    for server in servers {
        let ran = server.terminate().await;
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_secret(&ran);
    }

    let runs = runs(&homes[0], task).await;
    let slots: BTreeSet<&str> = runs.iter().filter_map(|run| run["slot"].as_str()).collect();
    assert_eq!(slots.len(), runs.len(), "each slot ran once: {runs:?}");
    let calls = ollama.requests().iter().filter(|request| request.path == "/api/chat").count();
    let asked = 2 * addresses.len();
    assert!(calls <= asked + runs.len(), "{calls} calls for {asked} questions and {} runs", runs.len());
}

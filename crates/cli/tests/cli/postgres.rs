//! Hob with its state in PostgreSQL: faults of the server, and two servers on one database.

use std::time::Duration;

use hob_app::POSTGRES_MIGRATIONS;
use hob_db::postgres::PostgresDatabase;
use hob_testkit::{FakeServer, Hold, PostgresServer, Reply, TestDatabase};
use serde_json::{Value, json};

use crate::fakes::{self, END, WHOLE, piece};
use crate::home::{Home, Ran, engines_config};
use crate::http::{Answer, chat, chat_with, get, post};
use crate::running::Running;

const QUESTION: &str = r#"{"model":"default","messages":[{"role":"user","content":"Capital?"}]}"#;
const STREAMED_QUESTION: &str =
    r#"{"model":"default","stream":true,"messages":[{"role":"user","content":"Capital?"}]}"#;
const STORED_QUESTION: &str = r#"{"model":"default","input":"Capital?"}"#;
const TASK: &str = r#"{"prompt":"Capital?","schedule_type":"interval","schedule_value":"3600"}"#;

/// In the URL of a private server.
const PASSWORD: &str = "hob-test";

/// How often a state that must come is asked for. The time limit of the test ends a wait that is in vain.
pub const POLL: Duration = Duration::from_millis(50);

/// A server of its own, and a database in it.
pub struct Private {
    // Dropped first, while its server runs.
    pub database: TestDatabase,
    pub server: PostgresServer,
}

impl Private {
    pub fn start() -> Self {
        let server = PostgresServer::start();
        Private { database: server.create_database(), server }
    }

    fn url(&self) -> String {
        self.server.tcp_url(&self.database)
    }
}

pub fn home_on(engine: &FakeServer, database_url: &str) -> Home {
    home_with(engine, database_url, "")
}

/// With more settings of the server.
fn home_with(engine: &FakeServer, database_url: &str, server: &str) -> Home {
    let config = engines_config(&[("ollama", &engine.url())]);
    // Without an agent, so that one question is one call.
    let config = config.replace("[server]\n", &format!("[server]\nagent = \"\"\n{server}"));
    Home::with_config(&format!(
        "{config}[scheduler]\nenabled = true\npoll_interval = 1\n[telemetry]\nenergy = false\n[database]\nurl = \"{database_url}\"\n"
    ))
}

/// The status, the header `retry-after` and the body.
#[derive(Debug, PartialEq, Eq)]
pub struct Reading {
    pub status: String,
    retry_after: Option<String>,
    body: String,
}

pub async fn read(answer: Answer) -> Reading {
    let text = answer.all().await;
    assert!(!text.contains(PASSWORD), "{text}");
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    let header = head.lines().find_map(|line| line.strip_prefix("retry-after: "));
    Reading {
        status: head.split(' ').nth(1).expect("a status").to_owned(),
        retry_after: header.map(str::to_owned),
        body: body.to_owned(),
    }
}

/// The same, once the server answers with this status.
pub async fn eventually(address: &str, status: &str, ask: impl AsyncFn(&str) -> Answer) -> Reading {
    loop {
        let reading = read(ask(address).await).await;
        if reading.status == status {
            return reading;
        }
        tokio::time::sleep(POLL).await;
    }
}

async fn ready(address: &str) -> Answer {
    get(address, "/health/ready").await
}

pub async fn create_task(address: &str) -> Answer {
    post(address, "/v1/tasks", TASK).await
}

async fn store_response(address: &str) -> Answer {
    post(address, "/v1/responses", STORED_QUESTION).await
}

pub async fn ask(address: &str) {
    let answer = read(chat(address, QUESTION).await).await;
    assert!(answer.status == "200" && answer.body.contains(WHOLE), "{answer:?}");
}

pub fn assert_away(reading: &Reading) {
    assert_eq!((reading.status.as_str(), reading.retry_after.as_deref()), ("503", Some("5")), "{reading:?}");
    let body: Value = body_of(reading);
    assert_eq!(body["error"]["code"], "database_unavailable", "{reading:?}");
}

/// Also of a body in chunks.
pub fn body_of(reading: &Reading) -> Value {
    let (start, end) = (reading.body.find('{').expect("JSON"), reading.body.rfind('}').expect("JSON"));
    serde_json::from_str(&reading.body[start..=end]).expect("JSON")
}

pub async fn json_of(home: &Home, arguments: &[&str]) -> Value {
    let ran = home.run(arguments).await;
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{arguments:?}");
    serde_json::from_str(&ran.stdout).expect("JSON")
}

/// Waits until so many calls are recorded.
async fn recorded(home: &Home, calls: u64) {
    let count = async || {
        json_of(home, &["telemetry", "stats", "--json"]).await["overview"]["figures"]["calls"].clone()
    };
    loop {
        let found = count().await;
        if found == json!(calls) {
            return;
        }
        assert!(found.as_u64() < Some(calls), "{found} calls instead of {calls}");
        tokio::time::sleep(POLL).await;
    }
}

pub fn assert_secret(ran: &Ran) {
    assert!(!format!("{ran:?}").contains(PASSWORD), "{ran:?}");
}

/// All that `home` has besides its configuration.
fn files(home: &Home) -> Vec<String> {
    let entries = std::fs::read_dir(home.directory()).expect("a directory");
    let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| name != "config.toml").collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_server_that_starts_before_its_database_answers_and_is_ready_when_the_database_is_there() {
    let mut postgres = Private::start();
    postgres.server.stop();
    let ollama = fakes::ollama().await;
    let home = home_on(&ollama, &postgres.url());
    let mut server = Running::start(&home, &[]).await;
    let address = server.address().to_owned();
    server.says("cannot be reached").await;
    let not_ready = read(ready(&address).await).await;
    assert_eq!(not_ready.status, "503");
    let reason = body_of(&not_ready)["reason"].as_str().expect("a reason").to_owned();
    assert!(reason.contains("cannot be reached") && reason.contains("127.0.0.1:"), "{reason}");
    ask(&address).await;
    assert_away(&read(create_task(&address).await).await);
    assert_away(&read(store_response(&address).await).await);
    // It may be the secret of a key: the keys could not be read yet.
    let secret = format!("hob_{}_{}", "a".repeat(12), "b".repeat(43));
    let header = format!("authorization: Bearer {secret}\r\nconnection: close");
    let ask_with_key = async |address: &str| chat_with(address, &header, QUESTION).await;
    let refused = read(ask_with_key(&address).await).await;
    assert_eq!((refused.status.as_str(), refused.retry_after.as_deref()), ("503", Some("5")), "{refused:?}");
    assert_eq!(body_of(&refused)["error"]["code"], "keys_unknown", "{refused:?}");
    postgres.server.start_again();
    assert_eq!(eventually(&address, "200", ready).await.body, r#"{"status":"ok"}"#);
    assert_eq!(read(create_task(&address).await).await.status, "201");
    // The call from before waited.
    recorded(&home, 1).await;
    // There is no key, so none is asked for.
    eventually(&address, "200", ask_with_key).await;
    let ran = server.terminate().await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("others are answered").count(), 1, "one warning:\n{}", ran.stderr);
    assert_secret(&ran);
}

#[tokio::test]
async fn streams_continue_while_the_database_restarts_and_are_recorded() {
    let mut postgres = Private::start();
    let hold = Hold::new();
    let reply = Reply::ndjson(piece("Once")).then_held(&hold, piece(" more") + END);
    let ollama = fakes::ollama_chatting(move |_| reply.clone()).await;
    let home = home_on(&ollama, &postgres.url());
    let server = Running::start(&home, &[]).await;
    let streamed = r#"{"model":"default","stream":true,"input":"Capital?"}"#;
    let mut answers = Vec::new();
    for _ in 0..3 {
        answers.push((chat(server.address(), STREAMED_QUESTION).await, "[DONE]"));
        answers.push((post(server.address(), "/v1/responses", streamed).await, "event: response.completed"));
    }
    for (answer, _) in &mut answers {
        answer.until("Once").await;
    }
    postgres.server.stop();
    postgres.server.start_again();
    hold.release();
    for (answer, end) in answers {
        let answer = answer.all().await;
        assert!(answer.contains(" more") && answer.contains(end) && !answer.contains("WARNING"), "{answer}");
    }
    recorded(&home, 6).await;
    assert_secret(&server.terminate().await);
}

#[tokio::test]
async fn without_the_database_chats_are_answered_and_what_must_be_stored_is_refused_for_a_while() {
    let mut postgres = Private::start();
    let ollama = fakes::ollama().await;
    let home = home_on(&ollama, &postgres.url());
    let server = Running::start(&home, &[]).await;
    let address = server.address().to_owned();
    let task = body_of(&read(create_task(&address).await).await)["id"].clone();
    postgres.server.kill();
    ask(&address).await;
    assert_away(&eventually(&address, "503", create_task).await);
    assert_away(&read(get(&address, "/v1/tasks").await).await);
    assert_away(&read(store_response(&address).await).await);
    assert_away(&read(post(&address, "/v1/conversations", "{}").await).await);
    assert_away(&read(post(&address, "/v1/memory/search", r#"{"query":"key"}"#).await).await);
    // All replicas share the database, so this server still takes requests.
    assert_eq!(read(ready(&address).await).await.status, "200");
    ask(&address).await;
    postgres.server.start_again();
    eventually(&address, "201", create_task).await;
    let stored = eventually(&address, "200", store_response).await;
    let stored = body_of(&stored)["id"].as_str().expect("an id").to_owned();
    assert_eq!(read(get(&address, &format!("/v1/responses/{stored}")).await).await.status, "200");
    let tasks = read(get(&address, "/v1/tasks").await).await;
    assert!(tasks.body.contains(task.as_str().expect("an id")), "nothing is lost: {tasks:?}");
    recorded(&home, 3).await;
    assert_secret(&server.terminate().await);
}

#[tokio::test]
async fn without_the_database_a_key_with_limits_is_refused_or_answered_as_configured() {
    let mut postgres = Private::start();
    let ollama = fakes::ollama().await;
    let refusing = home_on(&ollama, &postgres.url());
    let allowing = home_with(&ollama, &postgres.url(), "limit_failure = \"allow\"\n");
    // What counts for a day would be gone after midnight.
    let create = ["key", "create", "ana", "--budget", "100k tokens/month", "--json"];
    let created = json_of(&refusing, &create).await;
    let header =
        format!("authorization: Bearer {}\r\nconnection: close", created["secret"].as_str().expect("text"));
    let ask_with_key = async |address: &str| chat_with(address, &header, QUESTION).await;
    let refuses = Running::start(&refusing, &[]).await;
    let allows = Running::start(&allowing, &[]).await;
    postgres.server.stop();

    let refused = read(ask_with_key(refuses.address()).await).await;
    assert_eq!((refused.status.as_str(), refused.retry_after.as_deref()), ("503", Some("5")), "{refused:?}");
    assert_eq!(body_of(&refused)["error"]["code"], "limits_unknown", "{refused:?}");
    let allowed = read(ask_with_key(allows.address()).await).await;
    assert!(allowed.status == "200" && allowed.body.contains(WHOLE), "{allowed:?}");

    postgres.server.start_again();
    let ran = allows.terminate().await;
    assert!(ran.stderr.contains("its requests are answered without limits"), "{}", ran.stderr);
    let shown = json_of(&refusing, &["key", "show", "ana", "--json"]).await;
    assert!(shown["usage"][0]["used"].as_u64() > Some(0), "it counts when the database is back: {shown}");
    eventually(refuses.address(), "200", ask_with_key).await;
    let ran = refuses.terminate().await;
    assert!(ran.stderr.contains("its requests are refused"), "{}", ran.stderr);
    assert_secret(&ran);
}

#[tokio::test]
async fn a_database_that_becomes_read_only_refuses_what_must_be_stored_until_it_is_writable() {
    let postgres = Private::start();
    let ollama = fakes::ollama().await;
    let home = home_on(&ollama, &postgres.url());
    let server = Running::start(&home, &[]).await;
    let address = server.address().to_owned();
    assert_eq!(read(create_task(&address).await).await.status, "201");
    postgres.server.run_sql("ALTER SYSTEM SET default_transaction_read_only = on");
    postgres.server.run_sql("SELECT pg_reload_conf()");
    assert_away(&eventually(&address, "503", create_task).await);
    ask(&address).await;
    assert_eq!(read(get(&address, "/v1/tasks").await).await.status, "200", "it is still read");
    let doctor = home.run(&["doctor"]).await;
    assert!(doctor.stdout.contains("it is read-only"), "{}", doctor.stdout);
    postgres.server.run_sql("ALTER SYSTEM RESET default_transaction_read_only");
    postgres.server.run_sql("SELECT pg_reload_conf()");
    eventually(&address, "201", create_task).await;
    recorded(&home, 1).await;
    assert_secret(&server.terminate().await);
}

#[tokio::test]
async fn a_reload_that_waits_for_the_database_does_not_delay_the_stop() {
    let postgres = PostgresServer::shared().create_database();
    let ollama = fakes::ollama().await;
    let home = home_on(&ollama, &postgres.url());
    let server = Running::start(&home, &[]).await;
    let database =
        PostgresDatabase::new(postgres.url().parse().expect("a URL"), POSTGRES_MIGRATIONS).expect("opened");
    // The keys cannot be read while their table is locked.
    let (locked, mut is_locked) = tokio::sync::mpsc::unbounded_channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let locking = database.clone();
    let holder = std::thread::spawn(move || {
        locking.write(|transaction| {
            transaction.execute("LOCK TABLE api_key IN ACCESS EXCLUSIVE MODE", &[])?;
            locked.send(()).expect("the test waits");
            // Until the test drops the sender.
            let _ = released.recv();
            Ok(())
        })
    });
    is_locked.recv().await.expect("locked");
    let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'api_key'::regclass
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    let is_waiting = || {
        let count = database.read(|transaction| {
            Ok(transaction.query_opt(waiting, &[])?.map(|row| row.try_get::<_, i64>(0)).transpose()?)
        });
        count.expect("read") != Some(0)
    };
    let stop = async {
        while !is_waiting() {
            tokio::time::sleep(POLL).await;
        }
        server.terminate().await
    };
    let (reload, stopped) = tokio::join!(home.run(&["reload"]), stop);
    drop(release);
    holder.join().expect("no panic").expect("released");
    // If the stop waited for the reload, the failed reload would be reported first.
    assert_eq!((stopped.code, stopped.stderr.contains("was not reloaded")), (Some(0), false), "{stopped:?}");
    assert_eq!((reload.code, reload.stdout.as_str()), (Some(1), ""), "{reload:?}");
    assert!(reload.stderr.starts_with("error: cannot reload the server at "), "{reload:?}");
}

#[tokio::test]
async fn a_database_of_a_newer_hob_is_refused_with_words() {
    let postgres = PostgresServer::shared().create_database();
    let ollama = fakes::ollama().await;
    let home = home_on(&ollama, &postgres.url());
    let database =
        PostgresDatabase::new(postgres.url().parse().expect("a URL"), POSTGRES_MIGRATIONS).expect("opened");
    let newer = "UPDATE schema_version SET version = 900, usable_from = 900 WHERE capability = 'tasks'";
    database.write(|transaction| transaction.execute(newer, &[])).expect("changed");
    drop(database);
    let words = "was changed by a newer Hob: its version is 900";
    for arguments in [&["serve", "--port", "0"][..], &["scheduler", "list"], &["telemetry", "stats"]] {
        let ran = home.run(arguments).await;
        assert!(ran.code == Some(1) && ran.stderr.contains(words), "{arguments:?}: {ran:?}");
        assert_eq!(ran.stderr.lines().count(), 1, "{arguments:?}: {ran:?}");
    }
    let doctor = home.run(&["doctor"]).await;
    assert!(doctor.stdout.contains(words) && doctor.stdout.contains("→ Update Hob"), "{}", doctor.stdout);
}

#[tokio::test]
async fn the_doctor_shows_the_database_or_why_it_cannot_be_used_and_never_the_password() {
    let mut postgres = Private::start();
    let ollama = fakes::ollama().await;
    let home = home_on(&ollama, &postgres.url());
    let doctor = home.run(&["doctor"]).await;
    assert_secret(&doctor);
    assert_eq!((doctor.code, doctor.stderr.as_str()), (Some(0), ""));
    for needle in
        ["✓ database  PostgreSQL ", " ms\n", "pending migration", "at most 10 of this process", "✓ pgvector"]
    {
        assert!(doctor.stdout.contains(needle), "'{needle}' is missing:\n{}", doctor.stdout);
    }
    assert!(!doctor.stdout.contains("hob.db") && !doctor.stdout.contains("memory.db"), "{}", doctor.stdout);
    let again = home.run(&["doctor"]).await;
    assert!(again.stdout.contains("pending migration"), "it changes nothing:\n{}", again.stdout);
    assert_eq!(home.run(&["scheduler", "list"]).await.code, Some(0));
    let doctor = home.run(&["doctor"]).await;
    assert!(doctor.stdout.contains("schema: up to date"), "{}", doctor.stdout);
    postgres.server.stop();
    let doctor = home.run(&["doctor"]).await;
    assert_secret(&doctor);
    assert!(doctor.stdout.contains("! database  PostgreSQL at 127.0.0.1:"), "{}", doctor.stdout);
    assert!(doctor.stdout.contains("→ Start PostgreSQL"), "{}", doctor.stdout);
    assert_eq!(doctor.code, Some(0), "a question can be answered");
    let listed = home.run(&["scheduler", "list"]).await;
    assert_secret(&listed);
    assert!(listed.code == Some(1) && listed.stderr.contains("cannot be reached"), "{listed:?}");
    let wrong = home_on(&ollama, "mysql://hob:hob-test@127.0.0.1/hob");
    for ran in [wrong.run(&["doctor"]).await, wrong.run(&["ask", "Capital?"]).await] {
        assert_secret(&ran);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said.contains("it must start with postgres://"), "{said}");
    }
}

#[tokio::test]
async fn two_servers_on_one_database_share_everything_and_run_a_task_once() {
    let postgres = PostgresServer::shared().create_database();
    let ollama = fakes::ollama().await;
    let homes = [home_on(&ollama, &postgres.url()), home_on(&ollama, &postgres.url())];
    let one = Running::start(&homes[0], &[]).await;
    let other = Running::start(&homes[1], &[]).await;
    let stored = body_of(&read(store_response(one.address()).await).await);
    let id = stored["id"].as_str().expect("an id");
    let found = read(get(other.address(), &format!("/v1/responses/{id}")).await).await;
    assert_eq!(body_of(&found), stored);
    ask(one.address()).await;
    ask(other.address()).await;
    for home in &homes {
        recorded(home, 3).await;
    }
    let arguments = [
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
    let task = json_of(&homes[0], &arguments).await;
    let task = task["id"].as_str().expect("an id");
    let slots = async || {
        let logs = json_of(&homes[1], &["scheduler", "logs", task, "-n", "10000", "--json"]).await;
        let runs = logs.as_array().expect("a list").clone();
        let slots: Vec<String> =
            runs.iter().map(|run| run["slot"].as_str().expect("a time").to_owned()).collect();
        slots
    };
    while slots().await.len() < 5 {
        tokio::time::sleep(POLL).await;
    }
    assert_eq!(homes[1].run(&["scheduler", "cancel", task]).await.code, Some(0));
    for server in [one, other] {
        assert_eq!(server.terminate().await.code, Some(0));
    }
    let mut slots = slots().await;
    let runs = slots.len() as u64;
    slots.sort();
    slots.dedup();
    assert_eq!(slots.len() as u64, runs, "each slot ran once");
    recorded(&homes[0], 3 + runs).await;
    for home in &homes {
        // Both speak of one machine.
        assert_eq!(files(home), [".default_models.json.lock", "default_models.json", "server.address"]);
    }
}

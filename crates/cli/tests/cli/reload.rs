//! `hob reload`.

use hob_testkit::{Hold, Reply};
use serde_json::{Value, json};

use crate::fakes::{self, END, piece};
use crate::home::{Home, Ran, engines_config};
use crate::http::{chat, get};
use crate::running::Running;

const STREAMED_QUESTION: &str =
    r#"{"model": "default", "stream": true, "messages": [{"role": "user", "content": "Capital?"}]}"#;

#[tokio::test]
async fn a_reload_applies_changes_names_those_that_need_a_restart_and_drops_no_connection() {
    let hold = Hold::new();
    let reply = Reply::ndjson(piece("Once")).then_held(&hold, piece(" more") + END);
    let ollama = fakes::ollama_chatting(move |_| reply.clone()).await;
    let config = engines_config(&[("ollama", &ollama.url())]);
    let home = Home::with_config(&config);
    let write = |text: &str| std::fs::write(home.config_file(), text).expect("a file");
    let server = Running::start(&home, &[]).await;
    let mut answer = chat(server.address(), STREAMED_QUESTION).await;
    answer.until("Once").await;

    let unchanged = "Reloaded: nothing that can change at run time has changed.\n";
    let expected = Ran { code: Some(0), stdout: unchanged.into(), stderr: String::new() };
    assert_eq!(home.run(&["reload"]).await, expected);

    let keyed = "[server]\napi_key = \"s3cret-s3cret\"\naccess_log = \"json\"\nmax_in_flight = 7\n";
    write(&config.replace("[server]\n", keyed));
    let expected = Ran {
        code: Some(0),
        stdout: "Reloaded: server.api_key, server.access_log.\n".into(),
        stderr: "warning: server.max_in_flight: takes effect after a restart\n".into(),
    };
    assert_eq!(home.run(&["reload"]).await, expected);
    assert!(get(server.address(), "/v1/models").await.all().await.starts_with("HTTP/1.1 401"));

    // An invalid file changes nothing.
    write("[server]\napi_kye = \"7\"\n");
    let failed = home.run(&["reload"]).await;
    assert_eq!((failed.code, failed.stdout.as_str()), (Some(1), ""));
    let words = "error: the configuration was not reloaded; the old one stays in effect: ";
    assert!(failed.stderr.starts_with(words) && failed.stderr.contains("api_kye"), "{}", failed.stderr);
    assert!(get(server.address(), "/v1/models").await.all().await.starts_with("HTTP/1.1 401"));

    write(&config);
    let reloaded = home.run(&["reload", "--json"]).await;
    let reports: Value = serde_json::from_str(&reloaded.stdout).expect("JSON");
    let report = json!({
        "applied": ["server.api_key", "server.access_log"], "after_restart": [], "certificate_renewed": false,
    });
    assert_eq!((reloaded.code, reports), (Some(0), json!([report])));
    assert!(get(server.address(), "/v1/models").await.all().await.starts_with("HTTP/1.1 200"));

    hold.release();
    let answer = answer.all().await;
    assert!(answer.contains("data: [DONE]"), "the stream was not disturbed: {answer}");
    let audit = home.run(&["audit", "list", "--json"]).await;
    let audit: Value = serde_json::from_str(&audit.stdout).expect("JSON");
    let actions: Vec<&str> =
        audit.as_array().expect("a list").iter().filter_map(|entry| entry["action"].as_str()).collect();
    assert_eq!(actions, ["config.reload", "config.reload"]);
    let user = format!("terminal, user {}", rustix::process::geteuid().as_raw());
    assert_eq!((&audit[0]["actor"], &audit[0]["origin"]), (&json!("owner"), &json!(user)));
    let ran = server.terminate().await;
    assert_eq!(ran.code, Some(0));
    assert!(!ran.stderr.contains("s3cret"), "{}", ran.stderr);
    assert!(ran.stderr.contains("\"status\":401"), "the access log was on for a while: {}", ran.stderr);
}

#[tokio::test]
async fn without_a_server_the_command_says_so_and_a_killed_server_is_none() {
    let ollama = fakes::ollama().await;
    let home = Home::with_engines(&[("ollama", &ollama.url())]);
    let none = home.run(&["reload"]).await;
    assert_eq!((none.code, none.stdout.as_str()), (Some(1), ""));
    assert!(none.stderr.starts_with("error: no Hob server of "), "{}", none.stderr);

    let sockets = || {
        let entries = std::fs::read_dir(home.directory()).expect("a directory");
        let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text"));
        names.filter(|name| name.ends_with(".sock")).count()
    };
    let killed = Running::start(&home, &[]).await;
    killed.signal(rustix::process::Signal::KILL);
    killed.end().await;
    assert_eq!((sockets(), home.run(&["reload"]).await), (1, none));

    // The next server removes what the killed one left.
    let next = Running::start(&home, &[]).await;
    assert_eq!(sockets(), 1);
    assert_eq!(home.run(&["reload"]).await.code, Some(0));
    assert_eq!(next.terminate().await.code, Some(0));
    assert_eq!(sockets(), 0);
}

#[tokio::test]
async fn a_server_that_fails_does_not_keep_the_others_from_a_reload() {
    let ollama = fakes::ollama().await;
    let home = Home::with_engines(&[("ollama", &ollama.url())]);
    let server = Running::start(&home, &[]).await;
    // Comes before the name of any other server.
    let path = home.directory().join("server.0-0.sock");
    let failing = tokio::net::UnixListener::bind(&path).expect("a socket");
    let hangs_up = tokio::spawn(async move { while failing.accept().await.is_ok() {} });

    let ran = home.run(&["reload"]).await;
    let reloaded = "Reloaded: nothing that can change at run time has changed.\n";
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), reloaded), "{}", ran.stderr);
    assert!(ran.stderr.starts_with("error: cannot reload the server at "), "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);

    let ran = home.run(&["reload", "--json"]).await;
    let outcomes: Vec<Value> = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!((ran.code, outcomes.len()), (Some(1), 2));
    assert!(outcomes[0]["error"].is_string(), "{outcomes:?}");
    assert_eq!(outcomes[1]["applied"], json!([]));
    hangs_up.abort();
    assert_eq!(server.terminate().await.code, Some(0));
}

#[tokio::test]
async fn another_default_model_needs_no_restart() {
    let ollama = fakes::ollama().await;
    let home = Home::with_engines(&[("ollama", &ollama.url())]);
    let server = Running::start(&home, &[]).await;
    let is_default = async |model: &str| {
        let models = get(server.address(), "/v1/models").await.all().await;
        let body = models.split_once("\r\n\r\n").expect("a body").1;
        let list: Value = serde_json::from_str(body).expect("JSON");
        let named = list["data"].as_array().expect("a list").iter().find(|entry| entry["id"] == model);
        named.expect("the model")["default"] == json!(true)
    };
    let used = home.run(&["model", "use", "smollm2-tools:latest"]).await;
    assert_eq!(used.code, Some(0), "{}", used.stderr);
    let told = "The running server has reloaded intelligence.default_model.\n";
    assert!(used.stderr.ends_with(told), "{}", used.stderr);
    assert!(is_default("smollm2-tools:latest").await);

    // A server that cannot reload is named, and the choice is kept for its next start.
    let path = home.directory().join("server.0-0.sock");
    let failing = tokio::net::UnixListener::bind(&path).expect("a socket");
    let hangs_up = tokio::spawn(async move { while failing.accept().await.is_ok() {} });
    let used = home.run(&["model", "use", "auto"]).await;
    assert_eq!(used.code, Some(0), "{}", used.stderr);
    assert!(used.stderr.contains("A running server does not use it: cannot reload"), "{}", used.stderr);
    assert!(used.stderr.contains("has reloaded intelligence.default_model"), "{}", used.stderr);
    hangs_up.abort();
    assert_eq!(server.terminate().await.code, Some(0));
}

#[tokio::test]
async fn open_pages_learn_of_what_a_command_changes() {
    let ollama = fakes::ollama().await;
    let home = Home::with_engines(&[("ollama", &ollama.url())]);
    let server = Running::start(&home, &[]).await;
    let mut page = get(server.address(), "/pages/live").await;
    page.until(": alive").await;
    let task = ["scheduler", "create", "hello", "--type", "interval", "--value", "31536000"];
    let created = home.run(&task).await;
    assert_eq!(created.code, Some(0), "{}", created.stderr);
    page.until("\"tasks\"").await;
    assert_eq!(home.run(&["key", "create", "ana"]).await.code, Some(0));
    page.until("\"keys\"").await;
    assert_eq!(server.terminate().await.code, Some(0));
}

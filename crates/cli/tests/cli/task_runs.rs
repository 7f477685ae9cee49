//! `hob scheduler run` with a running server of the same home, and sources that change while it runs.

use std::sync::{Arc, Mutex};

use hob_testkit::{FakeServer, Reply};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

use crate::briefing::calendar;
use crate::fakes::{self, STREAMED, WHOLE, piece};
use crate::home::{Home, NOWHERE, Ran, engines_config};
use crate::running::Running;

fn home(ollama: &FakeServer) -> Home {
    Home::with_engines(&[("ollama", &ollama.url())])
}

/// Makes the home useless for a process that runs the task itself. A running server keeps its engine.
fn forget_the_engine(home: &Home) {
    std::fs::write(home.config_file(), engines_config(&[("ollama", NOWHERE)])).expect("a file");
}

/// The id of a new task that runs once a year.
async fn create(home: &Home, more: &[&str]) -> String {
    let yearly = ["scheduler", "create", "Capital?", "--type", "interval", "--value", "31536000", "--json"];
    let arguments = [&yearly[..], more].concat();
    let ran = home.run(&arguments).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let task: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    task["id"].as_str().expect("an id").to_owned()
}

async fn logs(home: &Home, id: &str) -> Vec<Value> {
    let ran = home.run(&["scheduler", "logs", id, "--json"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).expect("JSON")
}

/// The bodies of all chats so far.
fn chats(engine: &FakeServer) -> Vec<Value> {
    let requests = engine.requests();
    let chats = requests.iter().filter(|request| request.path == "/api/chat");
    chats.map(|chat| serde_json::from_slice(&chat.body).expect("JSON")).collect()
}

/// An engine that streams its answer, and what it was asked.
async fn listening_ollama() -> (FakeServer, Arc<Mutex<Vec<String>>>) {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = Arc::clone(&asked);
    let ollama = fakes::ollama_chatting(move |request| {
        heard.lock().expect("unlocked").push(request.text());
        Reply::transcript("ollama/chat_stream")
    })
    .await;
    (ollama, asked)
}

#[tokio::test]
async fn a_task_is_run_by_the_running_server_unless_it_must_not() {
    let ollama = fakes::ollama().await;
    let home = home(&ollama);
    let id = create(&home, &[]).await;
    let server = Running::start(&home, &[]).await;
    forget_the_engine(&home);
    let cut = "warning: the answer was cut off at its limit of tokens\n";
    let ran = home.run(&["scheduler", "run", &id]).await;
    assert_eq!(ran, Ran { code: Some(0), stdout: format!("{STREAMED}\n"), stderr: cut.into() });
    let ran = home.run(&["scheduler", "run", &id, "--json"]).await;
    let run: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!((&run["task_id"], &run["success"], &run["result"]), (&json!(id), &json!(true), &json!(WHOLE)));
    assert_eq!(logs(&home, &id).await[0]["id"], run["id"]);

    let alone = home.run(&["scheduler", "run", &id, "--standalone"]).await;
    assert_eq!((alone.code, alone.stdout.as_str()), (Some(1), ""));
    assert!(alone.stderr.starts_with("error: no engine answered on http://127.0.0.1:9"), "{}", alone.stderr);
    assert_eq!((chats(&ollama).len(), logs(&home, &id).await.len()), (2, 2), "nothing else ran");

    assert_eq!(server.terminate().await.code, Some(0));
    assert_eq!(home.run(&["scheduler", "run", &id]).await.code, Some(1), "no server runs any more");
}

#[tokio::test]
async fn options_of_a_run_work_the_same_with_and_without_the_server() {
    let ollama = fakes::ollama().await;
    let home = home(&ollama);
    let id = create(&home, &["--model", "smollm2"]).await;
    let _server = Running::start(&home, &[]).await;
    for options in [&["-m", "smollm2-tools"][..], &["-e", "ollama"], &[]] {
        let arguments = [&["scheduler", "run", id.as_str()][..], options].concat();
        ollama.forget();
        let by_server = home.run(&arguments).await;
        let asked = chats(&ollama);
        ollama.forget();
        let alone = [&arguments[..], &["--standalone"]].concat();
        assert_eq!(home.run(&alone).await, by_server, "{options:?}");
        assert_eq!(chats(&ollama), asked, "{options:?}");
        let model = if options.contains(&"-m") { "smollm2-tools" } else { "smollm2" };
        let named = asked[0]["model"].as_str().expect("a name");
        assert_eq!(named.split(':').next(), Some(model), "{options:?}");
    }
    let automatic = create(&home, &["--model", "auto"]).await;
    let refused = home.run(&["scheduler", "run", &automatic, "-e", "ollama"]).await;
    assert_eq!(
        refused.stderr,
        "error: the running server may choose a model that ollama does not have. Omit --engine, or use --standalone.\n"
    );
    let unknown = home.run(&["scheduler", "run", "nobody"]).await;
    assert_eq!(unknown.stderr, "error: there is no task 'nobody'; 'hob scheduler list' lists the tasks\n");
    // A run that fails is an error here too.
    let failing = create(&home, &["--model", "nope"]).await;
    let failed = home.run(&["scheduler", "run", &failing]).await;
    assert_eq!((failed.code, failed.stdout.as_str()), (Some(1), ""), "{}", failed.stderr);
    assert!(failed.stderr.contains("nope"), "{}", failed.stderr);
    assert_eq!(logs(&home, &failing).await[0]["outcome"], "failed");
}

#[tokio::test]
async fn ctrl_c_stops_the_run_of_the_server_and_not_the_server() {
    let ollama = fakes::ollama_chatting(|_| Reply::ndjson(piece("Once")).then_silence()).await;
    let home = home(&ollama);
    let id = create(&home, &["--retries", "3"]).await;
    let server = Running::start(&home, &[]).await;
    let mut child = home.hob(&["scheduler", "run", &id]).spawn().expect("hob starts");
    child.stdout.as_mut().expect("a pipe").read_exact(&mut [0; 4]).await.expect("a piece");
    let again = home.run(&["scheduler", "run", &id]).await;
    assert!(again.code == Some(1) && again.stderr.contains("is already running"), "{}", again.stderr);

    let pid = child.id().and_then(|pid| Pid::from_raw(pid.try_into().ok()?)).expect("hob runs");
    kill_process(pid, Signal::INT).expect("hob runs");
    ollama.hung_up(1).await;
    assert_eq!(child.wait().await.expect("hob ends").code(), Some(130));
    let run = loop {
        let run = logs(&home, &id).await.remove(0);
        if run["outcome"] != "running" {
            break run;
        }
    };
    assert_eq!((&run["outcome"], &run["error"]), (&json!("interrupted"), &json!("it was stopped")));
    assert_eq!(server.terminate().await.code, Some(0));
    assert_eq!(logs(&home, &id).await.len(), 1, "it is not tried again");
}

#[tokio::test]
async fn a_server_that_is_killed_during_a_run_is_an_error() {
    let ollama = fakes::ollama_chatting(|_| Reply::ndjson(piece("Once")).then_silence()).await;
    let home = home(&ollama);
    let id = create(&home, &[]).await;
    let server = Running::start(&home, &[]).await;
    let mut child = home.hob(&["scheduler", "run", &id]).spawn().expect("hob starts");
    child.stdout.as_mut().expect("a pipe").read_exact(&mut [0; 4]).await.expect("a piece");
    server.signal(Signal::KILL);
    let ran = Ran::from(child.wait_with_output().await.expect("hob ends"));
    assert_eq!(ran.code, Some(1));
    let expected = "error: the running server did not complete the answer: ";
    assert!(ran.stderr.contains(expected), "{}", ran.stderr);
}

#[tokio::test]
async fn a_source_that_is_added_changed_or_removed_needs_no_restart() {
    let (ollama, asked) = listening_ollama().await;
    let home = home(&ollama);
    let file = home.documents().join("club.ics");
    std::fs::write(&file, calendar()).expect("a file");
    let club = format!("club = {{ file = \"{}\" }}\n", file.display());
    let work = format!("work = {{ url = \"{NOWHERE}/me.ics\" }}\n");
    let server = Running::start(&home, &[]).await;
    let reload = async |sources: &str| {
        let section =
            if sources.is_empty() { String::new() } else { format!("[sources.calendar]\n{sources}") };
        std::fs::write(home.config_file(), engines_config(&[("ollama", &ollama.url())]) + &section)
            .expect("a file");
        let reloaded = home.run(&["reload"]).await;
        let expected =
            Ran { code: Some(0), stdout: "Reloaded: sources.calendar.\n".into(), stderr: String::new() };
        assert_eq!(reloaded, expected);
    };
    reload(&club).await;
    let id = create(&home, &["--first-call", "calendar"]).await;
    let run = async || {
        let ran = home.run(&["scheduler", "run", &id]).await;
        assert_eq!((ran.code, ran.stdout), (Some(0), format!("{STREAMED}\n")), "{}", ran.stderr);
        let prompt = asked.lock().expect("unlocked").last().expect("a question").clone();
        (prompt, ran.stderr)
    };
    let (prompt, told) = run().await;
    assert!(prompt.contains("Dentist at the harbour"), "{prompt}");
    assert!(told.contains("→ calendar") && !told.contains("not read"), "{told}");

    // One of two cannot be read: the others are in the answer, and the log names it.
    reload(&format!("{club}{work}")).await;
    let (prompt, told) = run().await;
    assert!(prompt.contains("Dentist at the harbour"), "{prompt}");
    let reason = "warning: sources were not read: calendar: work: cannot read from 127.0.0.1: ";
    assert!(told.contains(reason), "{told}");
    let error = logs(&home, &id).await[0]["error"].clone();
    let error = error.as_str().expect("a reason");
    assert!(
        error.starts_with("sources were not read: calendar: work: cannot read from 127.0.0.1: "),
        "{error}"
    );

    reload(&work).await;
    let (_, told) = run().await;
    let reason = "calls before the prompt failed: calendar: no calendar can be read: work: cannot read from 127.0.0.1: ";
    assert!(told.contains(reason), "{told}");

    reload("").await;
    let (_, told) = run().await;
    let reason =
        "calls before the prompt failed: calendar: there is no tool 'calendar': no calendar is configured.";
    assert!(told.contains(reason), "{told}");
    assert_eq!(server.terminate().await.code, Some(0));
}

#[tokio::test]
async fn a_recipe_is_tried_by_the_running_server_with_its_new_sources() {
    let (ollama, asked) = listening_ollama().await;
    let home = home(&ollama);
    let file = home.documents().join("club.ics");
    std::fs::write(&file, calendar()).expect("a file");
    let server = Running::start(&home, &[]).await;
    forget_the_engine(&home);
    let set = format!("calendar={}", file.display());
    let briefing = ["recipes", "add", "briefing", "--every", "2099-01-01 07:00"];
    let added = home.run(&[&briefing[..], &["--yes", "--run", "--set", &set]].concat()).await;
    assert_eq!(added.code, Some(0), "{}", added.stderr);
    assert!(added.stdout.ends_with(&format!("{STREAMED}\n")), "{}", added.stdout);
    let told = "The running server has reloaded sources.calendar.\n";
    assert!(added.stderr.contains(told), "{}", added.stderr);
    let prompt = asked.lock().expect("unlocked").last().expect("a question").clone();
    assert!(prompt.contains("Dentist at the harbour"), "{prompt}");
    assert_eq!(server.terminate().await.code, Some(0));
}

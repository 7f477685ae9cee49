//! `hob scheduler`.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use hob_testkit::Reply;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::process::Child;

use crate::fakes::{self, STREAMED, WHOLE};
use crate::home::{Home, Ran, engines_config};
use crate::running::Running;

async fn json_of(home: &Home, arguments: &[&str]) -> Value {
    let ran = home.run(arguments).await;
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{arguments:?}");
    serde_json::from_str(&ran.stdout).expect("JSON")
}

async fn create(home: &Home, more: &[&str]) -> Value {
    let arguments: Vec<&str> =
        ["scheduler", "create", "Capital?", "--json"].iter().chain(more).copied().collect();
    json_of(home, &arguments).await
}

fn id(task: &Value) -> &str {
    task["id"].as_str().expect("an id")
}

#[tokio::test]
async fn a_task_is_created_listed_shown_and_changed() {
    let home = Home::empty();
    let ran = home
        .run(&[
            "scheduler",
            "create",
            "Say hello.",
            "--type",
            "cron",
            "--value",
            "0 9 * * MON-FRI",
            "--timezone",
            "Europe/Berlin",
        ])
        .await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 6, "{}", ran.stdout);
    assert_eq!(lines[2], "Schedule   weekdays at 09:00 (cron 0 9 * * MON-FRI, Europe/Berlin)");
    assert!(lines[3].starts_with("Next runs  ") && lines[5].contains(" 09:00:00 +0"), "{}", ran.stdout);
    assert_eq!(ran.stderr, "The task runs while 'hob serve' or 'hob scheduler start' is running.\n");

    let tasks = json_of(&home, &["scheduler", "list", "--json"]).await;
    let id = id(&tasks[0]);
    let list = home.run(&["scheduler", "list"]).await.stdout;
    assert!(list.contains(id) && list.contains(" 09:00 ") && list.contains("in "), "{list}");
    let shown = home.run(&["scheduler", "show", id]).await.stdout;
    assert!(shown.contains("Agent") && shown.contains("simple"), "{shown}");
    assert!(!shown.contains("Tools"), "the agent simple uses none: {shown}");

    for (word, status, expected) in [
        ("pause", "paused", format!("Paused {id}. Resume it with 'hob scheduler resume {id}'.\n")),
        ("resume", "active", format!("Resumed {id}. Its next run is in ")),
        ("cancel", "cancelled", format!("Cancelled {id}.\n")),
    ] {
        let ran = home.run(&["scheduler", word, id]).await;
        assert!(ran.code == Some(0) && ran.stdout.starts_with(&expected), "{ran:?}");
        assert_eq!(json_of(&home, &["scheduler", "show", id, "--json"]).await["status"], status);
    }
    let ran = home.run(&["scheduler", "resume", id]).await;
    let refused = Ran {
        code: Some(1),
        stdout: String::new(),
        stderr: "error: a cancelled task cannot be changed\n".into(),
    };
    assert_eq!(ran, refused);
    assert_eq!(json_of(&home, &["scheduler", "list", "--status", "active", "--json"]).await, json!([]));
}

#[tokio::test]
async fn finished_tasks_are_listed_only_on_request() {
    let home = Home::empty();
    let yearly = ["--type", "interval", "--value", "31536000"];
    let [active, paused, cancelled] =
        [create(&home, &yearly).await, create(&home, &yearly).await, create(&home, &yearly).await];
    home.run(&["scheduler", "pause", id(&paused)]).await;
    home.run(&["scheduler", "cancel", id(&cancelled)]).await;
    let listed = async |more: &[&str]| home.run(&[&["scheduler", "list"], more].concat()).await;
    let shows = |ran: &Ran| [&active, &paused, &cancelled].map(|task| ran.stdout.contains(id(task)));

    let current = listed(&[]).await;
    assert_eq!(shows(&current), [true, true, false], "{}", current.stdout);
    assert_eq!(
        current.stderr,
        "1 task is completed or cancelled and not shown; use --all to show everything.\n"
    );
    for (flags, expected) in [
        (&["--json"][..], [true, true, false]),
        (&["--all"], [true; 3]),
        (&["--all", "--json"], [true; 3]),
        (&["--status", "cancelled"], [false, false, true]),
    ] {
        let ran = listed(flags).await;
        assert_eq!((shows(&ran), ran.stderr.as_str()), (expected, ""), "{flags:?}");
    }
    assert_eq!(listed(&["--all", "--status", "paused"]).await.code, Some(2));
}

#[tokio::test]
async fn every_flag_reaches_the_task() {
    let home = Home::with_config("[channel.whatsapp]\nenabled = true\n");
    let task = create(
        &home,
        &[
            "--type",
            "interval",
            "--value",
            "1h 30m",
            "--agent",
            "orchestrator",
            "--tools",
            "calculator,think",
            "--channel",
            "whatsapp",
            "--conversation",
            "4915112345678@s.whatsapp.net",
            "--retries",
            "2",
            "--timeout",
            "30",
            "--missed",
            "skip",
            "--name",
            "tea",
            "--first-call",
            "calculator {\"expression\": \"6 * 7\"}",
            "--show-results",
        ],
    )
    .await;
    let expected = json!({
        "schedule_type": "interval", "schedule_value": "1h 30m", "timezone": "UTC", "agent": "orchestrator",
        "tools": ["calculator", "think"], "channel": "whatsapp",
        "conversation_id": "4915112345678@s.whatsapp.net", "retries": 2, "timeout": 30.0,
        "missed": "skip", "status": "active", "metadata": { "name": "tea", "show_results": true },
        "first_calls": [{ "tool": "calculator", "arguments": { "expression": "6 * 7" } }],
        "schedule": "every 90 minutes",
    });
    for (field, value) in expected.as_object().expect("an object") {
        assert_eq!(&task[field], value, "{field}");
    }
    assert_eq!(task["upcoming"].as_array().map(Vec::len), Some(3));
    assert_eq!(task["upcoming"][0], task["next_run"]);
}

#[tokio::test]
async fn a_schedule_is_written_in_plain_words() {
    let home = Home::empty();
    let task = create(&home, &["--every", "Weekdays 07:00", "--timezone", "Europe/Berlin"]).await;
    assert_eq!(
        (&task["schedule_type"], &task["schedule_value"], &task["agent"]),
        (&json!("cron"), &json!("0 7 * * 1-5"), &json!("simple"))
    );
    let task = create(&home, &["--every", "every 15 minutes", "--tools", "calculator"]).await;
    assert_eq!((&task["schedule_value"], &task["agent"]), (&json!("15m"), &json!("orchestrator")));
    let list = home.run(&["scheduler", "list"]).await.stdout;
    assert!(list.contains("weekdays at 07:00") && list.contains("every 15 minutes"), "{list}");

    let ran = home.run(&["scheduler", "create", "p", "--every", "weekdys 07:00"]).await;
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.starts_with("error: 'weekdys 07:00' is not a schedule. Did you mean 'weekdays 07:00'?"),
        "{}",
        ran.stderr
    );
    for usage in [
        &["--every", "hourly", "--type", "cron", "--value", "@daily"][..],
        &["--type", "cron"],
        &["--value", "@daily"],
        &[],
    ] {
        let arguments: Vec<&str> = ["scheduler", "create", "p"].iter().chain(usage).copied().collect();
        assert_eq!(home.run(&arguments).await.code, Some(2), "{usage:?}");
    }
}

#[tokio::test]
async fn a_task_is_found_by_its_name() {
    let home = Home::empty();
    let named = ["--every", "hourly", "--name", "tea"];
    let unnamed = create(&home, &["--every", "hourly"]).await;
    let header = async || home.run(&["scheduler", "list"]).await.stdout.lines().next().map(str::to_owned);
    let columns = |header: Option<String>| header.is_some_and(|line| line.contains("NAME"));
    assert!(!columns(header().await), "no task has a name");
    let first = create(&home, &named).await;
    assert!(columns(header().await));
    let list = home.run(&["scheduler", "list"]).await.stdout;
    let row = |task: &Value| {
        let line = list.lines().find(|line| line.contains(id(task))).expect("a line");
        line.split_whitespace().nth(1).map(str::to_owned)
    };
    assert_eq!((row(&first).as_deref(), row(&unnamed).as_deref()), (Some("tea"), Some("-")), "{list}");
    for (command, status) in [("pause", "paused"), ("resume", "active")] {
        let ran = home.run(&["scheduler", command, "tea"]).await;
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(json_of(&home, &["scheduler", "show", id(&first), "--json"]).await["status"], status);
    }
    assert_eq!(json_of(&home, &["scheduler", "logs", "tea", "--json"]).await, json!([]));
    let shown = json_of(&home, &["scheduler", "show", "tea", "--json"]).await;
    assert_eq!(shown["id"], first["id"]);
    let ran = home.run(&[&["scheduler", "create", "Capital?", "--json"][..], &named].concat()).await;
    assert!(ran.stderr.contains("there is another active task 'tea', and both run"), "{}", ran.stderr);
    let second: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let ran = home.run(&["scheduler", "show", "tea"]).await;
    assert!(ran.code == Some(1) && ran.stderr.contains("several tasks are called 'tea'"), "{ran:?}");
    assert!(ran.stderr.contains(id(&first)) && ran.stderr.contains(id(&second)), "{ran:?}");
    home.run(&["scheduler", "cancel", id(&first)]).await;
    assert_eq!(json_of(&home, &["scheduler", "show", "tea", "--json"]).await["id"], second["id"]);
}

#[tokio::test]
async fn a_task_that_cannot_read_what_its_prompt_is_about_gets_a_tip() {
    let home = Home::empty();
    let notes = async |prompt: &str, more: &[&str]| {
        let created = [&["scheduler", "create", prompt, "--every", "hourly"][..], more].concat();
        let ran = home.run(&created).await;
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.stderr
    };
    for (prompt, tool) in [
        ("Summarise my notes and send me the result.", "--tools memory_search,"),
        ("What is in my Calendar?", "--tools calendar,"),
        ("Which e-mails need an answer?", "--tools mail,"),
        ("News of the day", "--tools feeds,"),
    ] {
        let stderr = notes(prompt, &[]).await;
        assert!(stderr.contains(tool) && stderr.contains("'hob recipes'"), "{prompt}: {stderr}");
        assert_eq!(stderr.lines().count(), 2, "{stderr}");
    }
    let first_call = r#"calculator {"expression": "6 * 7"}"#;
    for more in [["--agent", "simple"], ["--tools", "calculator"], ["--first-call", first_call]] {
        let stderr = notes("Summarise my notes.", &more).await;
        assert!(!stderr.contains("hob recipes"), "{more:?}: {stderr}");
    }
    assert!(!notes("Say hello to the newsroom.", &[]).await.contains("hob recipes"));
    assert_eq!(notes("Summarise my notes.", &["--json"]).await, "");
}

#[tokio::test]
async fn invalid_tasks_are_refused_with_a_reason_and_not_saved() {
    let home = Home::empty();
    for (arguments, reason) in [
        (
            &["--type", "cron", "--value", "61 * * * *"][..],
            "error: '61 * * * *' is not a cron expression: its minute cannot be '61'. It is a number from 0 to 59, or \
             several of them, as in 1,5 or 1-5 or */5\n",
        ),
        (&["--type", "interval", "--value", "-5"], "it must be more than 0"),
        (&["--type", "once", "--value", "2020-01-01T00:00"], "'2020-01-01T00:00' is in the past"),
        (
            &["--type", "once", "--value", "2099-01-01", "--timezone", "Mars/Olympus"],
            "unknown time zone 'Mars/Olympus'",
        ),
        (&["--type", "interval", "--value", "60", "--tools", "calculater"], "did you mean calculator?"),
        (&["--every", "hourly", "--first-call", "calculater"], "did you mean calculator?"),
        (&["--every", "hourly", "--first-call", "calculator 6*7"], "are not a JSON object"),
        (&["--type", "interval", "--value", "60", "--retries", "99"], "at most 10 retries"),
        (
            &["--type", "interval", "--value", "60", "--channel", "telegram"],
            "there is no channel 'telegram': no channel is configured",
        ),
    ] {
        let arguments: Vec<&str> = ["scheduler", "create", "p"].iter().chain(arguments).copied().collect();
        let ran = home.run(&arguments).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{arguments:?}");
        assert!(ran.stderr.contains(reason), "{arguments:?}: {}", ran.stderr);
    }
    let ran = home.run(&["scheduler", "pause", "nobody"]).await;
    assert_eq!(ran.stderr, "error: there is no task 'nobody'; 'hob scheduler list' lists the tasks\n");
    let ran = home.run(&["scheduler", "list"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""));
    assert!(!home.directory().join("hob.db").exists());
}

#[tokio::test]
async fn a_manual_run_prints_the_answer_or_fails() {
    let ollama = fakes::ollama().await;
    let home = Home::with_engines(&[("ollama", &ollama.url())]);
    let task = create(&home, &["--type", "interval", "--value", "3600"]).await;
    let ran = home.run(&["scheduler", "run", id(&task)]).await;
    let cut = "warning: the answer was cut off at its limit of tokens\n".to_owned();
    assert_eq!(ran, Ran { code: Some(0), stdout: format!("{STREAMED}\n"), stderr: cut });
    let logs = json_of(&home, &["scheduler", "logs", id(&task), "--json"]).await;
    assert_eq!((&logs[0]["success"], &logs[0]["result"]), (&json!(true), &json!(STREAMED)));
    let run = json_of(&home, &["scheduler", "run", id(&task), "--json"]).await;
    assert_eq!((&run["success"], &run["result"]), (&json!(true), &json!(WHOLE)), "as a whole");
    let table = home.run(&["scheduler", "logs", id(&task), "-n", "1"]).await.stdout;
    assert!(table.contains("succeeded") && table.contains("Paris"), "{table}");
    let telemetry = home.run(&["telemetry", "export"]).await.stdout;
    assert!(telemetry.contains("\"source\":\"scheduler\""), "{telemetry}");

    let broken = fakes::ollama_chatting(|_| Reply::json(500, r#"{"error": "out of memory"}"#)).await;
    std::fs::write(home.config_file(), engines_config(&[("ollama", &broken.url())])).expect("a file");
    let ran = home.run(&["scheduler", "run", id(&task)]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert!(ran.stderr.contains("out of memory"), "{}", ran.stderr);
    let logs = json_of(&home, &["scheduler", "logs", id(&task), "--json"]).await;
    assert_eq!((logs.as_array().map(Vec::len), &logs[0]["success"]), (Some(3), &json!(false)));
}

/// Waits until the task has this many finished runs.
async fn runs(home: &Home, id: &str, count: usize) -> Vec<Value> {
    loop {
        let logs = json_of(home, &["scheduler", "logs", id, "-n", "1000", "--json"]).await;
        let ended: Vec<Value> = logs
            .as_array()
            .expect("an array")
            .iter()
            .filter(|run| !run["success"].is_null())
            .cloned()
            .collect();
        if ended.len() >= count {
            return ended;
        }
    }
}

fn signal(child: &Child, signal: Signal) {
    let pid = child.id().and_then(|pid| pid.try_into().ok()).and_then(Pid::from_raw);
    kill_process(pid.expect("it runs"), signal).expect("it runs");
}

#[tokio::test]
async fn two_schedulers_on_one_home_run_every_slot_once_even_if_one_is_killed() {
    let ollama = fakes::ollama().await;
    let home = Home::with_config(
        &(engines_config(&[("ollama", &ollama.url())]) + "[scheduler]\npoll_interval = 1\n"),
    );
    let task = create(&home, &["--type", "interval", "--value", "1"]).await;
    let daemons = [(); 2].map(|()| home.hob(&["scheduler", "start"]).spawn().expect("hob starts"));
    let [victim, mut survivor] = daemons;
    let before = runs(&home, id(&task), 3).await.len();
    signal(&victim, Signal::KILL);
    let runs = runs(&home, id(&task), before + 2).await;
    let slots: BTreeSet<&str> = runs.iter().filter_map(|run| run["slot"].as_str()).collect();
    assert_eq!(slots.len(), runs.len(), "no slot ran twice: {runs:?}");
    assert!(runs.iter().all(|run| run["attempt"] == 1));

    signal(&survivor, Signal::TERM);
    assert!(survivor.wait().await.expect("it ends").success());
}

#[tokio::test]
async fn serve_runs_tasks_also_those_that_are_created_while_it_runs() {
    let ollama = fakes::ollama().await;
    let home = Home::with_engines(&[("ollama", &ollama.url())]);
    // There is no database yet.
    let server = Running::start(&home, &[]).await;
    let task = create(&home, &["--every", "every 1 second"]).await;
    assert_eq!(runs(&home, id(&task), 1).await[0]["result"], WHOLE);
    assert_eq!(server.terminate().await.code, Some(0));
}

#[tokio::test]
async fn first_calls_are_made_before_the_prompt_and_the_run_names_what_failed() {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = Arc::clone(&asked);
    let ollama = fakes::ollama_chatting(move |request| {
        heard.lock().expect("unlocked").push(request.text());
        Reply::transcript("ollama/chat_stream")
    })
    .await;
    let home = Home::with_engines(&[("ollama", &ollama.url())]);
    let note = home.documents().join("gate.md");
    std::fs::write(&note, "The gate needs oil.").expect("a file");
    let indexed = home.run(&["memory", "index", note.to_str().expect("text")]).await;
    assert_eq!(indexed.code, Some(0), "{}", indexed.stderr);
    let task = create(
        &home,
        &[
            "--every",
            "weekdays 07:00",
            "--first-call",
            r#"memory_search {"query": "", "recent_days": 2}"#,
            "--first-call",
            r#"calculator {"expression": 5}"#,
        ],
    )
    .await;
    let ran = home.run(&["scheduler", "run", id(&task)]).await;
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), format!("{STREAMED}\n").as_str()),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains("→ memory_search") && ran.stderr.contains("! calculator: "),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("warning: calls before the prompt failed: calculator: "), "{}", ran.stderr);
    let prompt = asked.lock().expect("unlocked").last().expect("a question").clone();
    for part in ["<results>", "The gate needs oil.", "This call failed: ", "</results>", "Capital?"] {
        assert!(prompt.contains(part), "{part}: {prompt}");
    }
    let logs = json_of(&home, &["scheduler", "logs", id(&task), "--json"]).await;
    assert_eq!((&logs[0]["success"], &logs[0]["result"]), (&json!(true), &json!(STREAMED)));
    assert!(logs[0]["error"].as_str().is_some_and(|error| error.contains("calculator: ")), "{logs}");
}

//! `hob recipes`.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hob_testkit::{Gateway, GatewayScript, ImapScript, ImapServer, MAIL_PASSWORD, MAIL_USER, Reply, part};
use serde_json::{Value, json};

use crate::fakes::{self, WHOLE};
use crate::home::{Home, engines_config};
use crate::running::Running;
use crate::terminal::Terminal;

#[tokio::test]
async fn recipes_are_listed() {
    let home = Home::empty();
    let ran = home.run(&["recipes"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for name in ["briefing", "inbox-digest", "watch-page", "weekly-review"] {
        assert!(ran.stdout.contains(name), "{}", ran.stdout);
    }
    let ran = home.run(&["recipes", "--json"]).await;
    let recipes: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(recipes[0]["settings"], json!(["calendar", "place", "feeds"]));
    assert!(!home.directory().join("hob.db").exists(), "nothing is created");
}

#[tokio::test]
async fn a_recipe_without_answers_is_refused_with_what_to_do() {
    let home = Home::with_engines(&[]);
    for (arguments, words) in [
        (&["recipes", "add", "lunch", "--yes"][..], "there is no recipe 'lunch'; there are briefing"),
        (&["recipes", "add", "briefing"], "there is no terminal to ask questions on. Use --yes"),
        (&["recipes", "add", "briefing", "--yes", "--set", "plaice=1"], "it has calendar, place, feeds"),
        (&["recipes", "add", "briefing", "--yes", "--set", "place=Berlin"], "52.52,13.41,Berlin"),
        (
            &["recipes", "add", "briefing", "--yes", "--every", "weekdys 7:00"],
            "Did you mean 'weekdays 7:00'?",
        ),
        (&["recipes", "add", "inbox-digest", "--yes"], "'hob channel add email --read-only' first"),
        (&["recipes", "add", "briefing", "--yes", "--channel", "pigeons"], "there is no channel 'pigeons'"),
    ] {
        let ran = home.run(arguments).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{arguments:?}: {}", ran.stderr);
    }
    let tasks = home.run(&["scheduler", "list", "--json"]).await.stdout;
    assert_eq!(tasks, "[]\n");
}

#[tokio::test]
async fn a_wrong_answer_can_be_corrected() {
    let home = Home::with_engines(&[]);
    let mut terminal = Terminal::start(&home, &["recipes", "add", "briefing"]);
    terminal.sees("When").await;
    terminal.line("weekdys 7:00").await;
    terminal.sees("warning:").await;
    terminal.sees("When").await;
    terminal.line("daily 7:00").await;
    for _ in 0..2 {
        terminal.sees("empty to skip: ").await;
        terminal.line("me.ics").await;
        terminal.sees("warning:").await;
    }
    terminal.sees("empty to skip: ").await;
    terminal.line("me.ics").await;
    terminal.sees("error:").await;
    assert_eq!(terminal.end().await, Some(1));
}

/// The arguments, and all sources of a briefing.
fn with_sources<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let sources = [
        "calendar=https://example.org/me.ics",
        "place=52.52,13.41,Berlin",
        "feeds=https://example.org/feed.xml",
    ];
    arguments.iter().copied().chain(sources.into_iter().flat_map(|source| ["--set", source])).collect()
}

#[tokio::test]
async fn a_wrong_channel_can_be_corrected() {
    let gateway = Gateway::start(GatewayScript::default()).await;
    let channel = format!("[channel]\nenabled = true\ngateway_url = \"{}\"\n", gateway.url());
    let home = Home::with_config(&(engines_config(&[]) + &channel));
    let arguments = with_sources(&["recipes", "add", "briefing", "--every", "daily 7:00"]);
    let mut terminal = Terminal::start(&home, &arguments);
    terminal.sees("empty to skip: ").await;
    terminal.line("").await;
    terminal.sees("for the log only: ").await;
    terminal.line("pigeons").await;
    terminal.sees("warning: there is no channel 'pigeons'; there are ").await;
    terminal.sees("slack").await;
    terminal.sees("for the log only: ").await;
    terminal.line("slack").await;
    terminal.sees("Run it once now? [y/N] ").await;
    terminal.line("n").await;
    assert_eq!(terminal.end().await, Some(0), "{}", terminal.text());

    // The other sources are configured now.
    let mut terminal = Terminal::start(&home, &arguments[..5]);
    terminal.sees("empty to skip: ").await;
    terminal.line("").await;
    for label in ["warning:", "warning:", "error:"] {
        terminal.sees("for the log only: ").await;
        terminal.line("pigeons").await;
        terminal.sees(label).await;
    }
    assert_eq!(terminal.end().await, Some(1), "{}", terminal.text());
    let tasks = home.run(&["scheduler", "list", "--json"]).await.stdout;
    let tasks: Vec<Value> = serde_json::from_str(&tasks).expect("JSON");
    assert_eq!((tasks.len(), &tasks[0]["channel"]), (1, &json!("slack")));
}

#[tokio::test]
async fn a_recipe_asks_for_the_mailbox_and_leaves_the_channel_off() {
    let imap = ImapServer::start(ImapScript::default()).await;
    let mail = format!("[mail]\nimap_port = {}\nimap_security = \"none\"\n", imap.port());
    let home = Home::with_config(&(engines_config(&[]) + &mail));
    let mut terminal = Terminal::start(&home, &["recipes", "add", "inbox-digest"]);
    terminal.sees("When").await;
    terminal.line("").await;
    for password in ["wrong", MAIL_PASSWORD] {
        terminal.sees("empty to skip: ").await;
        terminal.line(MAIL_USER).await;
        terminal.sees("IMAP server [imap.example.org]: ").await;
        terminal.line("127.0.0.1").await;
        terminal.sees("Password").await;
        terminal.line(password).await;
    }
    terminal.sees("for the log only: ").await;
    terminal.line("").await;
    terminal.sees("Run it once now? [y/N] ").await;
    terminal.line("n").await;
    assert_eq!(terminal.end().await, Some(0), "{}", terminal.text());
    assert!(!terminal.text().contains("s3cret"), "{}", terminal.text());
    let written = std::fs::read_to_string(home.config_file()).expect("a file");
    assert!(written.contains(MAIL_USER) && !written.contains("channel"), "{written}");
    let tasks = home.run(&["scheduler", "list", "--json"]).await.stdout;
    let tasks: Vec<Value> = serde_json::from_str(&tasks).expect("JSON");
    assert_eq!((tasks.len(), &tasks[0]["first_calls"][0]["tool"]), (1, &json!("mail")));
}

#[tokio::test]
async fn answers_are_written_to_the_configuration() {
    let home = Home::with_config("# mine\n[server]\nport = 9000\n");
    let adding = ["recipes", "add", "briefing", "--yes", "--json", "--timezone", "Europe/Berlin"];
    let ran = home.run(&with_sources(&adding)).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let task: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(
        (&task["schedule"], &task["tools"], &task["metadata"]),
        (&json!("weekdays at 07:00"), &json!([]), &json!({ "name": "briefing", "show_results": true }))
    );
    let tools: Vec<&str> = task["first_calls"]
        .as_array()
        .expect("calls")
        .iter()
        .filter_map(|call| call["tool"].as_str())
        .collect();
    assert!(tools.contains(&"memory_search"), "{tools:?}");
    let text = std::fs::read_to_string(home.config_file()).expect("the file");
    assert!(text.starts_with("# mine\n[server]\nport = 9000\n"), "{text}");
    for line in ["[sources.calendar]", "https://example.org/me.ics", "latitude = 52.52", "place = \"Berlin\""]
    {
        assert!(text.contains(line), "{line}: {text}");
    }
}

/// A note that is new, for a briefing.
async fn index_note(home: &Home) {
    let note = home.documents().join("gate.md");
    std::fs::write(&note, "The gate needs oil.").expect("a file");
    let indexed = home.run(&["memory", "index", note.to_str().expect("text")]).await;
    assert_eq!(indexed.code, Some(0), "{}", indexed.stderr);
}

#[tokio::test]
async fn a_briefing_is_delivered_to_its_channel_by_the_server() {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = Arc::clone(&asked);
    let ollama = fakes::ollama_chatting(move |request| {
        heard.lock().expect("unlocked").push(request.text());
        Reply::transcript("ollama/chat")
    })
    .await;
    let gateway = Gateway::start(GatewayScript::default()).await;
    let channel = format!("[channel]\nenabled = true\ngateway_url = \"{}\"\n", gateway.url());
    let home = Home::with_config(&(engines_config(&[("ollama", &ollama.url())]) + &channel));
    index_note(&home).await;
    let server = Running::start(&home, &[]).await;
    // The running server notices the new task.
    let added = home
        .run(&["recipes", "add", "briefing", "--yes", "--every", "every 1 second", "--channel", "slack"])
        .await;
    assert_eq!(added.code, Some(0), "{}", added.stderr);
    // As a frame, once the server has found out which protocol the gateway uses.
    let sent = loop {
        let posted = gateway.requests().into_iter().find(|request| request.path == "/send");
        let posted = posted.map(|request| serde_json::from_slice::<Value>(&request.body).expect("JSON"));
        if let Some(sent) =
            posted.or_else(|| gateway.frames().into_iter().find(|frame| frame["content"].is_string()))
        {
            break sent;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(sent["channel"], "slack");
    let content = sent["content"].as_str().expect("text");
    assert!(content.starts_with("## Notes\n- ") && content.contains("The gate needs oil."), "{content}");
    assert!(content.ends_with(&format!("\n\n## Summary\n{WHOLE}")), "{content}");
    let prompt = asked.lock().expect("unlocked")[0].clone();
    assert!(prompt.contains("The gate needs oil.") && prompt.contains("Summarise the results"), "{prompt}");
    assert!(prompt.contains("\"num_predict\":300"), "{prompt}");
    assert_eq!(server.terminate().await.code, Some(0));
}

#[tokio::test]
async fn a_briefing_works_with_a_small_model() {
    let gateway = Gateway::start(GatewayScript::default()).await;
    let channel = format!("[channel]\nenabled = true\ngateway_url = \"{}\"\n", gateway.url());
    // What the model writes is not tested: it has a few layers only, and does not come to an end.
    let limit = "[intelligence]\nmax_tokens = 64\n";
    let home = Home::with_config(&(engines_config(&[]) + &channel + limit));
    let models = home.directory().join("models");
    std::fs::create_dir(&models).expect("a directory");
    std::os::unix::fs::symlink(part("HOB_TEST_SHORT_MODEL"), models.join("smollm2.gguf")).expect("a link");
    index_note(&home).await;
    let added = home.run(&["recipes", "add", "briefing", "--yes", "--json", "--channel", "slack"]).await;
    assert_eq!(added.code, Some(0), "{}", added.stderr);
    let ran = home.run(&["scheduler", "run", "briefing", "-e", "embedded"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("The gate needs oil."), "{ran:?}");
    assert!(ran.stderr.contains("Delivered to slack."), "{ran:?}");
    let sent = gateway.requests().into_iter().find(|request| request.path == "/send").expect("a message");
    let sent: Value = serde_json::from_slice(&sent.body).expect("JSON");
    assert!(sent["content"].as_str().is_some_and(|text| text.contains("The gate needs oil.")), "{sent}");
}

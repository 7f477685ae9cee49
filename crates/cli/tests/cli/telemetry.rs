//! `hob telemetry`, after real questions to a fake engine.

use serde_json::{Value, json};

use crate::fakes;
use crate::home::{Home, NOWHERE, Ran};

/// A home directory with two answered questions, one of them streamed.
async fn used() -> Home {
    let ollama = fakes::ollama().await;
    let home = Home::with_engines(&[("ollama", &ollama.url())]);
    for arguments in [&["ask", "Capital?"][..], &["ask", "--no-stream", "Capital?"]] {
        assert_eq!(home.run(arguments).await.code, Some(0));
    }
    home
}

fn nothing(stdout: &str) -> Ran {
    Ran { code: Some(0), stdout: stdout.into(), stderr: "No calls are recorded yet.\n".into() }
}

async fn stats(home: &Home) -> Value {
    let ran = home.run(&["telemetry", "stats", "--json"]).await;
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    serde_json::from_str(&ran.stdout).expect("JSON")
}

#[tokio::test]
async fn without_records_there_is_no_error_and_no_file() {
    let home = Home::empty();
    assert_eq!(home.run(&["telemetry", "stats"]).await, nothing(""));
    assert_eq!(home.run(&["telemetry", "export"]).await, nothing("[\n]\n"));
    assert_eq!(home.run(&["telemetry", "export", "-f", "csv"]).await, nothing(""));
    assert_eq!(home.run(&["telemetry", "clear"]).await, nothing(""));
    assert_eq!(stats(&home).await["overview"]["figures"]["calls"], 0);
    assert!(!home.config_file().with_file_name("hob.db").exists());
}

#[tokio::test]
async fn stats_show_calls_tokens_and_times_of_models_engines_agents_and_days() {
    let home = used().await;
    let stats = stats(&home).await;
    let figures = &stats["overview"]["figures"];
    assert_eq!((&figures["calls"], &figures["failures"]), (&json!(2), &json!(0)));
    assert!(figures["prompt_tokens"].as_u64() > Some(0), "{figures}");
    assert!(figures["latency"]["p95"].as_f64() > Some(0.0), "{figures}");
    assert_eq!(stats["engines"][0]["engine"], "ollama");
    assert_eq!(stats["agents"][0]["agent"], Value::Null);
    assert_eq!(stats["days"].as_array().map(Vec::len), Some(14));

    let ran = home.run(&["telemetry", "stats"]).await;
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    for needle in [
        "2, 0 failed, 0 cancelled",
        "mean ",
        "p95 ",
        "First token",
        "█ ",
        "MODEL",
        "ENGINE",
        "AGENT",
        "smollm2",
    ] {
        assert!(ran.stdout.contains(needle), "'{needle}' is missing in: {}", ran.stdout);
    }
    let none = home.run(&["telemetry", "stats", "-n", "0"]).await;
    assert!(!none.stdout.contains("MODEL"), "{}", none.stdout);
}

#[tokio::test]
async fn every_call_is_exported_as_json_and_as_csv() {
    let home = used().await;
    let ran = home.run(&["telemetry", "export"]).await;
    let rows: Vec<Value> = serde_json::from_str(&ran.stdout).expect("a JSON array");
    let streamed: Vec<&Value> = rows.iter().map(|row| &row["streamed"]).collect();
    assert_eq!(streamed, [&json!(true), &json!(false)], "oldest first");
    assert_eq!((&rows[0]["engine"], &rows[0]["source"]), (&json!("ollama"), &json!("ask")));

    let csv = home.run(&["telemetry", "export", "-f", "csv"]).await.stdout;
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 3, "a header and two calls: {csv}");
    let fields: Vec<&str> = rows[0].as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(lines[0], fields.join(","));

    let file = home.config_file().with_file_name("calls.csv");
    let path = file.to_str().expect("text");
    let ran = home.run(&["telemetry", "export", "-f", "csv", "-o", path]).await;
    assert_eq!(ran, Ran { code: Some(0), stdout: String::new(), stderr: String::new() });
    assert_eq!(std::fs::read_to_string(&file).expect("a file"), csv);
}

#[tokio::test]
async fn text_of_an_engine_cannot_break_a_csv_line() {
    let ollama = fakes::ollama_chatting(|_| {
        hob_testkit::Reply::json(400, r#"{"error": "no, \"really\",\nnot today"}"#)
    })
    .await;
    let home = Home::with_engines(&[("ollama", &ollama.url())]);
    assert_eq!(home.run(&["ask", "q"]).await.code, Some(1));
    let rows = home.run(&["telemetry", "export"]).await.stdout;
    let rows: Vec<Value> = serde_json::from_str(&rows).expect("a JSON array");
    let error = rows[0]["error"].as_str().expect("what went wrong");
    let csv = home.run(&["telemetry", "export", "-f", "csv"]).await.stdout;
    assert!(csv.contains(&format!("\"{}\"", error.replace('"', "\"\""))), "{error:?} in {csv}");
}

#[tokio::test]
async fn a_file_that_cannot_be_written_is_named() {
    let ran = used().await.run(&["telemetry", "export", "-o", "/nowhere/at/all"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert!(ran.stderr.starts_with("error: cannot write /nowhere/at/all: "), "{}", ran.stderr);
}

#[tokio::test]
async fn records_are_deleted_only_after_confirmation() {
    let home = used().await;
    let refused = home.run_with_stdin(&["telemetry", "clear"], b"y\n").await;
    assert_eq!(refused.code, Some(1));
    assert_eq!(refused.stderr, "error: this deletes the record of 2 calls. Use -y to confirm.\n");
    assert_eq!(stats(&home).await["overview"]["figures"]["calls"], 2);

    let cleared = home.run(&["telemetry", "clear", "-y"]).await;
    let stderr = "Deleted the record of 2 calls.\n".into();
    assert_eq!(cleared, Ran { code: Some(0), stdout: String::new(), stderr });
    assert_eq!(home.run(&["telemetry", "stats"]).await, nothing(""));
}

#[tokio::test]
async fn records_are_readable_while_the_engine_is_down() {
    let home = used().await;
    std::fs::write(home.config_file(), crate::home::engines_config(&[("ollama", NOWHERE)])).expect("a file");
    assert_eq!(stats(&home).await["overview"]["figures"]["calls"], 2);
}

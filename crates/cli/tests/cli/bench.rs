//! `hob bench`, with a fake engine that always answers the same.

use serde_json::{Value, json};

use crate::fakes;
use crate::home::{Home, NOWHERE};

/// A path in the home of a test.
fn file(home: &Home, name: &str) -> String {
    home.directory().join(name).to_str().expect("text").to_owned()
}

fn lines(path: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("a file");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON on each line")).collect()
}

#[tokio::test]
async fn a_bench_sends_all_samples_and_writes_a_line_for_each_measurement() {
    let ollama = fakes::ollama().await;
    let home = Home::with_engines(&[("ollama", &ollama.url())]);
    let path = file(&home, "a.jsonl");
    let ran = home.run(&["bench", "run", "-n", "3", "-o", &path]).await;
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    for needle in
        ["ollama", "smollm2", "LATENCY", "P95", "full answer", "first token", "CONCURRENCY", "TOKENS/S"]
    {
        assert!(ran.stdout.contains(needle), "'{needle}' is missing in: {}", ran.stdout);
    }
    // One to load the model, three for latency, and three, four and sixteen for throughput.
    let asked = ollama.requests().iter().filter(|request| request.path == "/api/chat").count();
    assert_eq!(asked, 1 + 3 + 3 + 4 + 16);

    let lines = lines(&path);
    let measured: Vec<_> =
        lines.iter().map(|line| (&line["benchmark"], &line["concurrency"], &line["samples"])).collect();
    assert_eq!(
        measured,
        [
            (&json!("latency"), &Value::Null, &json!(3)),
            (&json!("throughput"), &json!(1), &json!(3)),
            (&json!("throughput"), &json!(4), &json!(4)),
            (&json!("throughput"), &json!(16), &json!(16)),
        ]
    );
    let latency = &lines[0];
    let time = |what: &str, name: &str| latency[what][name].as_f64().expect("a time");
    for what in ["latency", "first_token"] {
        assert!(0.0 < time(what, "min") && time(what, "min") <= time(what, "p50"), "{latency}");
        assert!(
            time(what, "p50") <= time(what, "p95") && time(what, "p95") <= time(what, "max"),
            "{latency}"
        );
    }
    assert!(lines[3]["tokens_per_second"].as_f64() > Some(0.0));
    for line in &lines {
        assert_eq!((&line["engine"], &line["hob"]), (&json!("ollama"), &json!(env!("CARGO_PKG_VERSION"))));
        assert!(line["machine"]["cpu"].as_str().is_some_and(|cpu| !cpu.is_empty()), "{line}");
        assert!(line["date"].as_str().is_some_and(|date| date.ends_with('Z')), "{line}");
    }

    let exported = home.run(&["telemetry", "export"]).await.stdout;
    let rows: Vec<Value> = serde_json::from_str(&exported).expect("a JSON array");
    assert_eq!(rows.len(), asked);
    assert!(rows.iter().all(|row| row["source"] == "bench"), "recorded as what it is");
}

#[tokio::test]
async fn one_measurement_can_be_chosen_and_read_by_a_program() {
    let ollama = fakes::ollama().await;
    let home = Home::with_engines(&[("ollama", &ollama.url())]);
    let ran = home.run(&["bench", "run", "-b", "latency", "-n", "2", "-m", "smollm2", "--json"]).await;
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let lines: Vec<Value> = serde_json::from_str(&ran.stdout).expect("a JSON array");
    assert_eq!(lines.len(), 1);
    assert_eq!((&lines[0]["benchmark"], &lines[0]["model"]), (&json!("latency"), &json!("smollm2")));
}

#[tokio::test]
async fn two_files_are_compared_and_the_second_run_is_added_to_the_first() {
    let ollama = fakes::ollama().await;
    let home = Home::with_engines(&[("ollama", &ollama.url())]);
    let (before, after) = (file(&home, "before.jsonl"), file(&home, "after.jsonl"));
    for path in [&before, &before, &after] {
        let ran = home.run(&["bench", "run", "-n", "1", "-b", "latency", "-o", path]).await;
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
    assert_eq!((lines(&before).len(), lines(&after).len()), (2, 1));
    let ran = home.run(&["bench", "compare", &before, &after]).await;
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "the same machine and model");
    for needle in ["BEFORE", "AFTER", "latency p95", "first token mean", "x"] {
        assert!(ran.stdout.contains(needle), "'{needle}' is missing in: {}", ran.stdout);
    }
    let ran = home.run(&["bench", "compare", "--json", &before, &after]).await;
    let compared: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(compared["figures"].as_array().map(Vec::len), Some(6));
    assert_eq!(compared["warnings"], json!([]));
}

#[tokio::test]
async fn a_file_that_is_something_else_is_named_with_its_line() {
    let home = Home::empty();
    let good = json!({
        "date": "d", "hob": "0", "engine": "e", "model": "m",
        "machine": { "os": "o", "arch": "a", "cpu": "c", "memory_gb": 1.0, "gpus": [] },
        "benchmark": "throughput", "concurrency": 1, "samples": 1, "tokens": 1, "seconds": 1.0,
        "tokens_per_second": 1.0,
    });
    let (fine, broken, empty) = (file(&home, "fine"), file(&home, "broken"), file(&home, "empty"));
    std::fs::write(&fine, format!("{good}\n")).expect("a file");
    std::fs::write(&broken, format!("{good}\n\n{{\"benchmark\":\"speed\"}}\n")).expect("a file");
    std::fs::write(&empty, "\n").expect("a file");
    for (other, reason) in [
        (broken.as_str(), format!("error: line 3 of {broken} is not a result of 'hob bench run -o'")),
        (&empty, format!("error: {empty} has no results; create some with 'hob bench run -o {empty}'")),
        ("/nowhere/at/all", "error: cannot read /nowhere/at/all".to_owned()),
    ] {
        let ran = home.run(&["bench", "compare", &fine, other]).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
        assert!(ran.stderr.starts_with(&reason), "{}", ran.stderr);
    }
}

#[tokio::test]
async fn an_engine_that_fails_has_no_results() {
    let ollama =
        fakes::ollama_chatting(|_| hob_testkit::Reply::json(500, r#"{"error": "out of memory"}"#)).await;
    let home = Home::with_engines(&[("ollama", &ollama.url())]);
    let path = file(&home, "a.jsonl");
    let ran = home.run(&["bench", "run", "-n", "1", "-o", &path]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert!(ran.stderr.contains("out of memory"), "{}", ran.stderr);
    assert!(!std::path::Path::new(&path).exists());

    let nobody = Home::with_engines(&[("ollama", NOWHERE)]).run(&["bench", "run", "-e", "ollama"]).await;
    assert_eq!((nobody.code, nobody.stdout.as_str()), (Some(1), ""));
}

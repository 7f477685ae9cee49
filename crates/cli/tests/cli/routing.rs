//! `hob ask --router`, `hob feedback` and `hob router`, in front of an Ollama with several models.

use hob_testkit::{FakeServer, Reply};
use serde_json::{Value, json};

use crate::fakes::{END, piece};
use crate::home::{Home, Ran};

/// An Ollama with a small and a large model, one for code, and one that only makes vectors.
async fn ollama() -> FakeServer {
    FakeServer::start(|request| match request.path.as_str() {
        "/api/tags" => {
            let model = |name: &str, size: &str, family: &str| {
                json!({ "name": name, "details": { "parameter_size": size, "family": family } })
            };
            let models = [
                model("large:latest", "70B", "llama"),
                model("small:latest", "600M", "llama"),
                model("some-coder:7b", "7B", "llama"),
                model("vectors:latest", "22M", "bert"),
            ];
            Reply::json(200, json!({ "models": models }).to_string())
        }
        "/api/chat" => {
            let body: Value = serde_json::from_slice(&request.body).expect("JSON");
            let by_model = |text: String| text.replace("smollm2", body["model"].as_str().expect("a name"));
            match &body["stream"] {
                Value::Bool(true) => Reply::ndjson(by_model(piece("Yes.") + END)),
                _ => Reply::json(200, by_model(END.replace("\"content\":\"\"", "\"content\":\"Yes.\""))),
            }
        }
        _ => Reply::json(404, "{\"error\": \"not found\"}"),
    })
    .await
}

async fn home_with_models() -> (Home, FakeServer) {
    let ollama = ollama().await;
    (Home::with_engines(&[("ollama", &ollama.url())]), ollama)
}

/// The models that were asked, in order.
fn asked(ollama: &FakeServer) -> Vec<String> {
    let requests = ollama.requests();
    let chats = requests.iter().filter(|request| request.path == "/api/chat");
    let bodies = chats.map(|chat| serde_json::from_slice::<Value>(&chat.body).expect("JSON"));
    bodies.map(|body| body["model"].as_str().expect("a name").to_owned()).collect()
}

async fn shown(home: &Home) -> Value {
    let ran = home.run(&["router", "show", "--json"]).await;
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    serde_json::from_str(&ran.stdout).expect("JSON")
}

#[tokio::test]
async fn the_suitable_model_answers_and_v_shows_why() {
    let (home, ollama) = home_with_models().await;
    for (question, model, why) in [
        ("Why?", "small:latest", "the question is short and simple, so the smallest of 2 models"),
        (
            "Fix the bug in this Python function.",
            "some-coder:7b",
            "it is about code, so the only model for code",
        ),
        ("What is 17 * 23?", "large:latest", "it is about mathematics, so the largest of 2 models"),
    ] {
        for whole in [&[][..], &["--no-stream"]] {
            let arguments = [&["ask", "-v", "--router", "heuristic", question], whole].concat();
            let ran = home.run(&arguments).await;
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Yes.\n"), "{}", ran.stderr);
            let expected = format!("{model} on ollama. heuristic: {why}");
            assert!(ran.stderr.contains(&expected), "'{expected}' is missing in: {}", ran.stderr);
            assert_eq!(asked(&ollama).last().map(String::as_str), Some(model));
        }
    }
    let quiet = home.run(&["ask", "--router", "heuristic", "Why?"]).await;
    assert_eq!(quiet, Ran { code: Some(0), stdout: "Yes.\n".into(), stderr: String::new() });
}

#[tokio::test]
async fn only_json_output_has_the_reason() {
    let (home, _ollama) = home_with_models().await;
    let ran = home.run(&["ask", "--json", "--router", "heuristic", "Why?"]).await;
    let answer: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let why = "heuristic: the question is short and simple, so the smallest of 2 models";
    assert_eq!(answer["model_reason"], why);
    let ran = home.run(&["ask", "--json", "-m", "large", "Why?"]).await;
    let answer: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(answer.get("model_reason"), None);
}

#[tokio::test]
async fn a_model_and_a_router_together_are_an_error() {
    let ran = Home::empty().run(&["ask", "--router", "grpo", "-m", "large", "Why?"]).await;
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains("'--router <POLICY>' cannot be used with '--model <MODEL>'"),
        "{}",
        ran.stderr
    );
    let ran = Home::empty().run(&["ask", "--router", "random", "Why?"]).await;
    assert!(ran.stderr.contains("heuristic, grpo"), "{}", ran.stderr);
}

#[tokio::test]
async fn learned_results_survive_the_process_and_can_be_reset() {
    let (home, ollama) = home_with_models().await;
    for number in 0..10 {
        let question = format!("Who is number {number}?");
        let ran = home.run(&["ask", "--router", "grpo", &question]).await;
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
    let asked = asked(&ollama);
    let times = |model: &str| asked.iter().filter(|name| *name == model).count();
    assert!(
        ["small:latest", "large:latest", "some-coder:7b"].iter().all(|model| times(model) >= 3),
        "each is tried: {asked:?}"
    );
    let report = shown(&home).await;
    assert_eq!(
        (&report["decisions"], &report["classes"][0]["class"]),
        (&json!(10), &json!("plain/short/english"))
    );
    let models = report["classes"][0]["models"].as_array().expect("a list");
    let sum = |field: &str| models.iter().filter_map(|model| model[field].as_f64()).sum::<f64>();
    assert_eq!((models.len(), sum("samples")), (3, 10.0));
    assert!((sum("probability") - 1.0).abs() < 1e-9, "{report}");

    let table = home.run(&["router", "show"]).await.stdout;
    for needle in ["CLASS", "MEAN REWARD", "PROBABILITY", "plain/short/english", "small:latest", "exploring"]
    {
        assert!(table.contains(needle), "'{needle}' is missing in: {table}");
    }
    let refused = home.run(&["router", "reset"]).await;
    assert_eq!(
        (refused.code, refused.stderr.as_str()),
        (
            Some(1),
            "error: this deletes everything the router learned from 10 decisions. Use -y to confirm.\n"
        )
    );
    assert_eq!(home.run(&["router", "reset", "-y"]).await.code, Some(0));
    assert_eq!(shown(&home).await["classes"], json!([]));
}

#[tokio::test]
async fn the_last_answer_is_rated_and_named() {
    let (home, _ollama) = home_with_models().await;
    home.run(&["ask", "--router", "heuristic", "Why?"]).await;
    let ran = home.run(&["feedback", "good"]).await;
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert!(ran.stdout.starts_with("Rated good: the answer of small:latest on ollama, "), "{}", ran.stdout);
    assert!(ran.stdout.ends_with("). The router learns from it.\n"), "{}", ran.stdout);
    let reward = &shown(&home).await["classes"][0]["models"][0]["mean_reward"];
    assert!(reward.as_f64() > Some(0.9), "{reward}");

    home.run(&["ask", "-m", "large", "Why?"]).await;
    let ran = home.run(&["feedback", "bad", "--json"]).await;
    let rated: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!((&rated["model"], &rated["learnt"]), (&json!("large"), &json!(false)));
    assert_eq!(shown(&home).await["ratings"], json!({ "good": 1, "bad": 1 }));
}

#[tokio::test]
async fn without_an_answer_a_rating_fails_and_creates_no_file() {
    let home = Home::empty();
    for (arguments, expected) in [
        (&["feedback", "good"][..], "there is no answer yet that could be rated. Ask a question first"),
        (&["feedback", "bad", "chatcmpl-1"], "there is no answer 'chatcmpl-1' of the last days. The ID is"),
    ] {
        let ran = home.run(arguments).await;
        assert_eq!(ran.code, Some(1));
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    }
    assert_eq!(home.run(&["router", "show"]).await.code, Some(0));
    assert_eq!(home.run(&["router", "reset"]).await.code, Some(0));
    assert!(!home.config_file().with_file_name("hob.db").exists());
}

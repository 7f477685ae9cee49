//! The models of an Ollama: listed, shown, loaded and downloaded.

use std::time::Duration;

use futures::StreamExt;
use hob_core::{Engine, ModelInfo};
use hob_engines::ollama::{ModelDetails, OllamaPullProgress};
use hob_testkit::{FakeServer, Reply, Transcript};

use super::ollama;
use crate::support::body;

#[tokio::test]
async fn models_are_listed_by_the_names_ollama_gives() {
    let server = FakeServer::replying(Reply::transcript("ollama/tags")).await;
    let model = |id: &str, size| ModelInfo {
        created: Some(1_794_706_631),
        parameters: Some(134_520_000),
        size: Some(size),
        quantization: Some("Q4_1".into()),
        ..ModelInfo::named(id)
    };
    assert_eq!(
        ollama(&server).list_models().await.unwrap(),
        [model("smollm2:latest", 98_363_034), model("smollm2-tools:latest", 98_363_619)]
    );
    // On a busy machine the time of a probe may be up before its answer arrives.
    let mut probes = 1;
    let probed = async {
        while !ollama(&server).health().await {
            probes += 1;
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), probed).await.expect("a healthy Ollama");
    let asked: Vec<String> = server.requests().into_iter().map(|request| request.path).collect();
    assert!(asked.iter().all(|path| path == "/api/tags"), "{asked:?}");
    assert!((2..=1 + probes).contains(&asked.len()), "{probes} probes: {asked:?}");
}

#[tokio::test]
async fn a_model_is_loaded_before_it_is_needed() {
    let server = FakeServer::replying(Reply::transcript("ollama/chat_load")).await;
    ollama(&server).prepare("smollm2").await.unwrap();
    let recorded = Transcript::load("ollama/chat_load");
    let sent = &server.requests()[0];
    assert_eq!((&sent.path, body(&sent.text())), (&recorded.path, body(&recorded.request_body)));
}

#[tokio::test]
async fn a_models_details_are_shown() {
    let server = FakeServer::replying(Reply::transcript("ollama/show")).await;
    let expected = ModelDetails {
        family: Some("llama".into()),
        parameters: Some(134_515_008),
        quantization: Some("Q4_1".into()),
        context: Some(8192),
        capabilities: vec!["completion".into()],
        license: Some("apache-2.0".into()),
    };
    assert_eq!(ollama(&server).show("smollm2").await.unwrap(), expected);
    assert_eq!(body(&server.requests()[0].text()), body(&Transcript::load("ollama/show").request_body));
}

/// All steps of a download, and its error.
async fn pulled(reply: Reply) -> (Vec<OllamaPullProgress>, Option<String>) {
    let server = FakeServer::replying(reply).await;
    let mut stream = ollama(&server).pull("tinyllama").await.unwrap();
    let recorded = Transcript::load("ollama/pull_offline");
    let sent = server.requests().remove(0);
    assert_eq!((&sent.path, body(&sent.text())), (&recorded.path, body(&recorded.request_body)));
    let mut steps = Vec::new();
    while let Some(step) = stream.next().await {
        match step {
            Ok(step) => steps.push(step),
            Err(error) => {
                assert!(stream.next().await.is_none(), "an error is the end");
                return (steps, Some(error.to_string()));
            }
        }
    }
    (steps, None)
}

fn step(status: &str) -> OllamaPullProgress {
    OllamaPullProgress { status: status.into(), digest: None, total: None, completed: None }
}

#[tokio::test]
async fn a_download_reports_progress() {
    let lines = concat!(
        "{\"status\":\"pulling manifest\"}\n",
        "{\"status\":\"pulling 170370233dd5\",\"digest\":\"sha256:170370233dd5\",\"total\":4000,\"completed\":1000}\n",
        "{\"status\":\"success\"}\n",
    );
    let expected = vec![
        step("pulling manifest"),
        OllamaPullProgress {
            digest: Some("sha256:170370233dd5".into()),
            total: Some(4000),
            completed: Some(1000),
            ..step("pulling 170370233dd5")
        },
        step("success"),
    ];
    for reply in
        [Reply::ndjson(lines), Reply::ndjson(lines).in_packets_of(3), Reply::ndjson(lines.trim_end())]
    {
        assert_eq!(pulled(reply).await, (expected.clone(), None));
    }
}

#[tokio::test]
async fn a_download_that_fails_says_why() {
    let (steps, error) = pulled(Reply::transcript("ollama/pull_offline")).await;
    assert_eq!(steps, [step("pulling manifest")]);
    let error = error.unwrap();
    assert!(error.contains("no such host"), "{error}");
}

#[tokio::test]
async fn a_download_that_ends_early_is_an_error() {
    let line = "{\"status\":\"pulling manifest\"}\n";
    for reply in [
        Reply::ndjson(line),
        Reply::ndjson(line).then_cut(),
        Reply::ndjson(format!("{line}{{\"status\":\"succ")),
        Reply::ndjson(format!("{line}7\n{{\"status\":\"success\"}}\n")),
    ] {
        let (steps, error) = pulled(reply).await;
        assert_eq!(steps, [step("pulling manifest")]);
        assert!(
            error.is_some_and(|error| error.starts_with("ollama broke off its answer: ")),
            "an end without success"
        );
    }
}

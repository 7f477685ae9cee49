//! Errors of Ollama, and connections that break, hang or are dropped.

use std::time::Duration;

use futures::StreamExt;
use hob_core::{CompletionRequest, Delta, Engine, EngineError, GenerateRequest};
use hob_engines::Ollama;
use hob_testkit::{FakeServer, Reply};
use serde_json::json;

use super::{ollama, replayed, seeded, with_tool_names};
use crate::support::{CAPITAL, all, asking, asking_for_the_weather, body, closed_endpoint, hasty_endpoint};

const HALF: &str = "{\"message\":{\"role\":\"assistant\",\"content\":\"half\"},\"done\":false}\n";

#[tokio::test]
async fn errors_have_ollamas_text() {
    let thinking = GenerateRequest {
        extra: [("think".to_owned(), json!(true))].into_iter().collect(),
        ..seeded(asking(CAPITAL, 24))
    };
    let (refused, sent, expected) = replayed("ollama/chat_think", &thinking).await;
    assert_eq!(body(&sent.text()), expected);
    assert_eq!(
        refused.unwrap_err().to_string(),
        "ollama answered 400: registry.ollama.ai/library/smollm2:latest does not support thinking"
    );

    let with_tools = seeded(asking_for_the_weather(24));
    let (refused, sent, expected) = replayed("ollama/chat_tools_unsupported", &with_tools).await;
    assert_eq!(body(&sent.text()), with_tool_names(expected));
    assert_eq!(
        refused.unwrap_err().to_string(),
        "ollama answered 400: registry.ollama.ai/library/smollm2:latest does not support tools"
    );

    let server = FakeServer::replying(Reply::transcript("ollama/err_bad_json")).await;
    let refused = ollama(&server).generate(&asking(CAPITAL, 8)).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "ollama answered 400: invalid character 'b' looking for beginning of object key string"
    );
}

#[tokio::test]
async fn a_conversation_that_is_too_long_is_refused_with_the_limit() {
    let refusal = r#"{"error":"the input length exceeds the context length"}"#;
    let words = "ollama answered 400: This model's maximum context length is";
    let advice = "Please reduce the length of the messages. (the input length exceeds the context length)";
    let chosen = GenerateRequest {
        extra: [("options".to_owned(), json!({ "num_ctx": 2048 }))].into_iter().collect(),
        ..asking(CAPITAL, 8)
    };
    let loaded = json!({ "models": [
        { "name": "other:latest", "context_length": 1024 },
        { "name": "smollm2:latest", "context_length": 4096 },
    ] });
    for (running, request, limit) in [
        (loaded, &chosen, Some(4096)),
        // Older versions do not report it.
        (json!({ "models": [{ "name": "smollm2:latest" }] }), &chosen, Some(2048)),
        (json!({ "models": [] }), &asking(CAPITAL, 8), None),
    ] {
        let server = FakeServer::start(move |request| match request.path.as_str() {
            "/api/ps" => Reply::json(200, running.to_string()),
            _ => Reply::json(400, refusal),
        })
        .await;
        let engine = ollama(&server);
        let text = CompletionRequest {
            model: "smollm2".into(),
            prompt: "Once upon a time".into(),
            extra: request.extra.clone(),
            ..CompletionRequest::default()
        };
        for error in [
            engine.generate(request).await.err(),
            engine.stream(request).await.err(),
            engine.complete(&text).await.err(),
        ] {
            let error = error.unwrap();
            assert_eq!(error.context_overflow().map(|overflow| overflow.limit), Some(limit));
            let expected = match limit {
                Some(limit) => format!("{words} {limit} tokens. {advice}"),
                None => "ollama answered 400: the input length exceeds the context length".to_owned(),
            };
            assert_eq!(error.to_string(), expected);
        }
    }
}

#[tokio::test]
async fn an_unknown_model_has_its_own_error() {
    let request = GenerateRequest { model: "nope".into(), ..asking(CAPITAL, 8) };
    let server = FakeServer::replying(Reply::transcript("ollama/err_model_not_found")).await;
    let engine = ollama(&server);
    for error in [
        engine.generate(&request).await.err(),
        engine.stream(&request).await.err(),
        engine.prepare("nope").await.err(),
    ] {
        assert!(
            matches!(&error, Some(EngineError::ModelNotFound { model, .. }) if model == "nope"),
            "{error:?}"
        );
    }
    let server = FakeServer::replying(Reply::transcript("ollama/err_show_missing")).await;
    let error = ollama(&server).show("nope").await.unwrap_err();
    assert_eq!(error.to_string(), "ollama has no model 'nope'");
}

#[tokio::test]
async fn a_stream_that_breaks_never_looks_complete() {
    let error_line = "{\"error\":\"an unknown error was encountered\"}\n";
    for (reply, reason) in [
        (Reply::ndjson(HALF).then_cut(), "ollama broke off its answer: "),
        (
            Reply::ndjson(HALF),
            "ollama broke off its answer: the connection closed before the answer was complete",
        ),
        (
            Reply::ndjson(format!("{HALF}{{\"message\":{{\"con")),
            "ollama broke off its answer: the connection closed before the answer was complete",
        ),
        (
            Reply::ndjson(format!("{HALF}{error_line}")),
            "ollama answered 500: an unknown error was encountered",
        ),
        (
            Reply::ndjson(format!("{HALF}{}", "x".repeat(17 << 20))),
            "ollama broke off its answer: a frame is longer than 16 MiB",
        ),
    ] {
        let server = FakeServer::replying(reply).await;
        let stream = ollama(&server).stream(&asking(CAPITAL, 8)).await.unwrap();
        let (deltas, error) = all(stream).await;
        assert_eq!(deltas, [Delta::text("half")]);
        let error = error.unwrap().to_string();
        assert!(error.starts_with(reason), "{error}");
    }
}

#[tokio::test]
async fn a_stream_is_the_same_byte_by_byte() {
    let mut packings = Vec::new();
    for reply in
        [Reply::transcript("ollama/chat_stream"), Reply::transcript("ollama/chat_stream").in_packets_of(1)]
    {
        let server = FakeServer::replying(reply).await;
        let stream = ollama(&server).stream(&asking(CAPITAL, 8)).await.unwrap();
        packings.push(all(stream).await.0);
    }
    assert_eq!(packings[1], packings[0]);
}

#[tokio::test]
async fn an_error_under_a_good_status_is_an_error() {
    let server = FakeServer::replying(Reply::json(200, "{\"error\":\"llama runner died\"}")).await;
    let error = ollama(&server).generate(&asking(CAPITAL, 8)).await.unwrap_err();
    assert_eq!(error.to_string(), "ollama answered 500: llama runner died");
}

#[tokio::test]
async fn a_silent_ollama_times_out_and_a_stopped_one_is_unreachable() {
    let server = FakeServer::replying(Reply::silence()).await;
    let engine = Ollama::new(hasty_endpoint("ollama", &server));
    let error = engine.generate(&asking(CAPITAL, 8)).await.unwrap_err();
    assert!(matches!(error, EngineError::Timeout { .. }), "{error:?}");

    let engine = Ollama::new(closed_endpoint("ollama").await);
    let error = engine.generate(&asking(CAPITAL, 8)).await.unwrap_err();
    assert!(matches!(error, EngineError::Unreachable { .. }), "{error:?}");
    assert!(!engine.health().await);
}

#[tokio::test]
async fn a_stream_that_is_dropped_hangs_up_on_ollama() {
    let server = FakeServer::replying(Reply::ndjson(HALF).then_silence()).await;
    let mut stream = ollama(&server).stream(&asking(CAPITAL, 8)).await.unwrap();
    assert_eq!(stream.deltas.next().await.unwrap().unwrap(), Delta::text("half"));
    drop(stream);
    tokio::time::timeout(Duration::from_secs(60), server.hung_up(1)).await.expect("Ollama is left alone");
}

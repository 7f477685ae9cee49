//! Ollama over real sockets, against recordings of the real server.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up should fail loudly")]

#[path = "support/mod.rs"]
mod support;

use std::time::Duration;

use futures::StreamExt;
use hob_core::{
    Answer, AnswerWarning, Delta, Engine, EngineError, FinishReason, GenerateRequest, Generation, JsonSchema,
    ModelInfo, ResponseFormat, Sampling, ToolCall, ToolChoice, Usage,
};
use hob_engines::Ollama;
use hob_engines::ollama::{ModelDetails, OllamaPullProgress};
use hob_testkit::{FakeServer, Recorded, Reply, Transcript};
use serde_json::{Value, json};

use support::{
    CAPITAL, all, asking, asking_for_the_weather, body, closed_endpoint, endpoint, hasty_endpoint,
};

const HALF: &str = "{\"message\":{\"role\":\"assistant\",\"content\":\"half\"},\"done\":false}\n";

fn ollama(server: &FakeServer) -> Ollama {
    Ollama::new(endpoint("ollama", server))
}

/// As in the recordings: always with the same seed.
fn seeded(request: GenerateRequest) -> GenerateRequest {
    GenerateRequest { sampling: Sampling { seed: Some(1), ..request.sampling.clone() }, ..request }
}

/// The answer of the real Ollama to a request, with the request as sent and as recorded.
async fn replayed(
    recording: &str,
    request: &GenerateRequest,
) -> (Result<Generation, EngineError>, Recorded, Value) {
    let server = FakeServer::replying(Reply::transcript(recording)).await;
    let outcome = ollama(&server).generate(request).await;
    let recorded = Transcript::load(recording);
    let sent = server.requests().remove(0);
    assert_eq!((sent.method.as_str(), &sent.path), ("POST", &recorded.path));
    (outcome, sent, body(&recorded.request_body))
}

fn said(content: &str) -> Answer {
    Answer {
        content: content.into(),
        reasoning: None,
        tool_calls: Vec::new(),
        finish_reason: FinishReason::Stop,
        sealed_reasoning: Vec::new(),
        later_thoughts: Vec::new(),
        logprobs: None,
    }
}

/// `loaded` is how long the model took to load, in nanoseconds.
fn used(prompt_tokens: u64, completion_tokens: u64, loaded: u64) -> Option<Usage> {
    let load_time = Some(Duration::from_nanos(loaded));
    Some(Usage { prompt_tokens, completion_tokens, cached_tokens: None, reasoning_tokens: None, load_time })
}

#[tokio::test]
async fn a_question_is_answered() {
    let (generation, sent, expected) = replayed("ollama/chat", &seeded(asking(CAPITAL, 24))).await;
    assert_eq!(body(&sent.text()), expected);
    let answer = "The capital of France is Paris, a city known for its historical landmarks and cultural institutions.";
    assert_eq!(
        generation.unwrap(),
        Generation {
            model: "smollm2".into(),
            answer: said(answer),
            alternatives: Vec::new(),
            usage: used(21, 19, 7_779_976_744),
            warnings: Vec::new(),
        }
    );
}

#[tokio::test]
async fn a_stream_has_deltas_and_then_usage() {
    let server = FakeServer::replying(Reply::transcript("ollama/chat_stream")).await;
    let stream = ollama(&server).stream(&seeded(asking(CAPITAL, 8))).await.unwrap();
    let (deltas, error) = all(stream).await;
    assert!(error.is_none(), "{error:?}");
    let words = ["The", " capital", " of", " France", " is", " Paris", ",", " a"];
    let expected: Vec<Delta> = words
        .map(Delta::text)
        .into_iter()
        .chain([
            Delta::Finish { choice: 0, reason: FinishReason::Length },
            Delta::Done { usage: used(21, 8, 29_616_591) },
        ])
        .collect();
    assert_eq!(deltas, expected);

    // The recorder omitted Ollama's default.
    let mut expected = body(&Transcript::load("ollama/chat_stream").request_body);
    expected["stream"] = json!(true);
    assert_eq!(body(&server.requests()[0].text()), expected);
}

/// The recorded request, with the tool names that Hob's results carry and the recorded ones do not.
fn with_tool_names(mut recorded: Value) -> Value {
    for message in recorded["messages"].as_array_mut().unwrap() {
        if message["role"] == "tool" {
            message["tool_name"] = json!("get_weather");
        }
    }
    recorded
}

fn asking_the_tool_model() -> GenerateRequest {
    GenerateRequest { model: "smollm2-tools".into(), ..seeded(asking_for_the_weather(48)) }
}

#[tokio::test]
async fn a_call_comes_back_with_an_id_and_its_arguments_as_text() {
    let (generation, sent, expected) = replayed("ollama/chat_tools", &asking_the_tool_model()).await;
    assert_eq!(body(&sent.text()), with_tool_names(expected));
    let generation = generation.unwrap();
    let id = generation.answer.tool_calls[0].id.clone();
    assert!(id.starts_with("call_"), "{id}");
    let call = ToolCall { id, name: "get_weather".into(), arguments: "{\"city\":\"Paris\"}".into() };
    let expected = Answer { tool_calls: vec![call], finish_reason: FinishReason::ToolCalls, ..said("") };
    assert_eq!((generation.answer, generation.usage), (expected, used(238, 18, 21_224_678)));
}

#[tokio::test]
async fn two_calls_never_have_the_same_id() {
    let server = FakeServer::replying(Reply::transcript("ollama/chat_tools")).await;
    let engine = ollama(&server);
    let mut ids = Vec::new();
    for _ in 0..2 {
        let generation = engine.generate(&asking_the_tool_model()).await.unwrap();
        ids.extend(generation.answer.tool_calls.into_iter().map(|call| call.id));
    }
    assert_eq!(ids.len(), 2);
    assert_ne!(ids[0], ids[1]);
}

#[tokio::test]
async fn a_streamed_call_is_complete_and_ends_the_answer() {
    let server = FakeServer::replying(Reply::transcript("ollama/chat_tools_stream")).await;
    let stream = ollama(&server).stream(&asking_the_tool_model()).await.unwrap();
    let (deltas, error) = all(stream).await;
    assert!(error.is_none(), "{error:?}");
    let [Delta::ToolCall(call), finish, done] = &deltas[..] else { panic!("{deltas:?}") };
    assert!(call.id.as_deref().is_some_and(|id| id.starts_with("call_")));
    assert_eq!(
        (call.index, call.name.as_deref(), call.arguments.as_str()),
        (0, Some("get_weather"), "{\"city\":\"Paris\"}")
    );
    let reason = FinishReason::ToolCalls;
    assert_eq!(finish, &Delta::Finish { choice: 0, reason });
    assert_eq!(done, &Delta::Done { usage: used(238, 18, 18_572_007) });
    assert_eq!(
        body(&server.requests()[0].text()),
        with_tool_names(body(&Transcript::load("ollama/chat_tools_stream").request_body))
    );
}

#[tokio::test]
async fn answers_keep_the_form_that_was_asked_for() {
    let request = GenerateRequest {
        response_format: ResponseFormat::JsonObject,
        ..seeded(asking("Give JSON about Paris.", 48))
    };
    let (generation, sent, expected) = replayed("ollama/chat_format_json", &request).await;
    assert_eq!(body(&sent.text()), expected);
    assert!(generation.unwrap().answer.content.contains("Le Grand Châtelet"));

    let schema = json!({
        "type": "object",
        "properties": { "city": { "type": "string" }, "country": { "type": "string" } },
        "required": ["city", "country"],
    });
    let request = GenerateRequest {
        response_format: ResponseFormat::JsonSchema(JsonSchema {
            name: "c".into(),
            description: None,
            schema,
            strict: None,
        }),
        ..seeded(asking("Give JSON about Paris.", 64))
    };
    let (generation, sent, expected) = replayed("ollama/chat_format_schema", &request).await;
    assert_eq!(body(&sent.text()), expected);
    let city: Value = serde_json::from_str(&generation.unwrap().answer.content).unwrap();
    assert_eq!(city, json!({ "city": "Paris", "country": "FRANCE" }));
}

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
async fn a_model_without_reasoning_answers_with_a_warning() {
    let server = FakeServer::start(|request| {
        if !request.text().contains("\"think\"") {
            Reply::transcript("ollama/chat")
        } else if request.text().contains("\"think\":\"high\"") {
            // The error of versions without levels.
            let words = "json: cannot unmarshal string into Go struct field ChatRequest.think of type bool";
            Reply::json(400, json!({ "error": words }).to_string())
        } else {
            Reply::transcript("ollama/chat_think")
        }
    })
    .await;
    let request = GenerateRequest {
        extra: [("reasoning_effort".to_owned(), json!("high"))].into_iter().collect(),
        ..asking(CAPITAL, 24)
    };
    let generation = ollama(&server).generate(&request).await.unwrap();
    assert_eq!(generation.warnings, [AnswerWarning::Ignored("reasoning_effort".into())]);
    let thought: Vec<Value> =
        server.requests().iter().map(|sent| body(&sent.text())["think"].clone()).collect();
    assert_eq!(thought, [json!("high"), json!(true), Value::Null]);
}

#[tokio::test]
async fn several_answers_are_asked_for_one_by_one() {
    let request = GenerateRequest {
        sampling: Sampling { n: std::num::NonZeroU32::new(3), seed: Some(7), ..Sampling::default() },
        ..asking(CAPITAL, 24)
    };
    let server = FakeServer::start(|request| {
        let streamed = request.text().contains("\"stream\":true");
        Reply::transcript(if streamed { "ollama/chat_stream" } else { "ollama/chat" })
    })
    .await;
    let one = ollama(&server).generate(&asking(CAPITAL, 24)).await.unwrap();
    let one_used = one.usage.unwrap();
    let three = used(3 * one_used.prompt_tokens, 3 * one_used.completion_tokens, 7_779_976_744);

    let generation = ollama(&server).generate(&request).await.unwrap();
    assert_eq!(generation.answers().collect::<Vec<_>>(), vec![&one.answer; 3]);
    assert_eq!(generation.usage, three);
    let mut seeds: Vec<i64> = server.requests()[1..]
        .iter()
        .filter_map(|sent| serde_json::from_str::<Value>(&sent.text()).unwrap()["options"]["seed"].as_i64())
        .collect();
    seeds.sort_unstable();
    assert_eq!(seeds, [7, 8, 9]);

    let (deltas, error) = all(ollama(&server).stream(&request).await.unwrap()).await;
    assert!(error.is_none(), "{error:?}");
    let mut collector = hob_core::Collector::default();
    deltas.into_iter().for_each(|delta| collector.push(delta));
    let generation = collector.finish("m").unwrap();
    assert_eq!(generation.answers().count(), 3);
    assert!(generation.answers().all(|answer| answer.content == generation.answer.content));
}

#[tokio::test]
async fn a_demanded_call_comes_back_as_a_call() {
    let written = json!({
        "model": "smollm2",
        "message": { "role": "assistant", "content": "{\n  \"city\": \"Paris\"\n}" },
        "done": true,
        "done_reason": "stop",
    });
    let server = FakeServer::replying(Reply::json(200, written.to_string())).await;
    let request = GenerateRequest { tool_choice: Some(ToolChoice::Required), ..asking_for_the_weather(64) };
    let answer = ollama(&server).generate(&request).await.unwrap().answer;
    assert_eq!((answer.content.as_str(), &answer.finish_reason), ("", &FinishReason::ToolCalls));
    let [call] = answer.tool_calls.as_slice() else { panic!("{answer:?}") };
    assert_eq!(call.name, "get_weather");
    assert_eq!(body(&call.arguments), json!({ "city": "Paris" }));
    assert_eq!(body(&server.requests()[0].text())["format"]["required"], json!(["city"]));
}

#[tokio::test]
async fn a_field_that_no_api_documents_is_ignored_by_name() {
    let server = FakeServer::replying(Reply::transcript("ollama/chat")).await;
    let request = GenerateRequest {
        extra: [("future_field".to_owned(), json!(1))].into_iter().collect(),
        ..asking(CAPITAL, 24)
    };
    let generation = ollama(&server).generate(&request).await.unwrap();
    assert_eq!(generation.warnings, [AnswerWarning::Ignored("future_field".into())]);
}

#[tokio::test]
async fn unsupported_requests_are_not_sent_to_ollama() {
    let server = FakeServer::replying(Reply::transcript("ollama/chat")).await;
    let request = GenerateRequest {
        extra: [("logit_bias".to_owned(), json!({ "50256": -100 }))].into_iter().collect(),
        ..asking(CAPITAL, 8)
    };
    let error = ollama(&server).generate(&request).await.unwrap_err();
    assert_eq!(error.to_string(), "ollama does not support 'logit_bias'");
    assert_eq!(server.requests(), []);
}

#[tokio::test]
async fn a_version_without_probabilities_does_not_pretend() {
    let request = GenerateRequest {
        sampling: Sampling { logprobs: true, ..Sampling::default() },
        ..asking(CAPITAL, 8)
    };
    for recording in ["ollama/chat", "ollama/chat_stream"] {
        let server = FakeServer::replying(Reply::transcript(recording)).await;
        let engine = ollama(&server);
        let error = if recording.ends_with("stream") {
            all(engine.stream(&request).await.unwrap()).await.1
        } else {
            engine.generate(&request).await.err()
        };
        assert!(
            matches!(&error, Some(EngineError::Unsupported { field, .. }) if field == "logprobs"),
            "{error:?}"
        );
    }
}

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
    assert!(ollama(&server).health().await);
    let asked: Vec<String> = server.requests().into_iter().map(|request| request.path).collect();
    assert_eq!(asked, ["/api/tags", "/api/tags"]);
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

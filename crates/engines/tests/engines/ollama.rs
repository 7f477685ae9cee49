//! Ollama over real sockets, against recordings of the real server.

mod failures;
mod models;

use std::time::Duration;

use hob_core::{
    Answer, AnswerWarning, Delta, Engine, EngineError, FinishReason, GenerateRequest, Generation, JsonSchema,
    ResponseFormat, Sampling, ToolCall, ToolChoice, Usage,
};
use hob_engines::Ollama;
use hob_testkit::{FakeServer, Recorded, Reply, Transcript};
use serde_json::{Value, json};

use crate::support::{CAPITAL, all, asking, asking_for_the_weather, body, endpoint};

fn ollama(server: &FakeServer) -> Ollama {
    Ollama::new(endpoint("ollama", server))
}

/// As in the recordings: always with the same seed.
fn seeded(request: GenerateRequest) -> GenerateRequest {
    GenerateRequest { sampling: Sampling { seed: Some(1), ..request.sampling.clone() }, ..request }
}

/// A recorded request, with the fields that Hob adds so that Ollama does not cut the conversation.
fn uncut(mut recorded: Value) -> Value {
    recorded["truncate"] = json!(false);
    recorded["shift"] = json!(false);
    recorded
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
    (outcome, sent, uncut(body(&recorded.request_body)))
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
    let mut expected = uncut(body(&Transcript::load("ollama/chat_stream").request_body));
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
        uncut(with_tool_names(body(&Transcript::load("ollama/chat_tools_stream").request_body)))
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

//! The table of text completions, reranking, tokens, sound and pictures in `docs/api-compatibility.md`: what becomes of each field, by
//! engine. The test sends every field to every engine, and looks at what reaches it.

use std::fmt::Write;
use std::sync::Arc;

use hob_core::Engine;
use hob_engines::{Cloud, CloudOptions, Endpoint, EndpointOptions, Ollama, Provider, Style};
use hob_testkit::{FakeServer, Recorded, Reply};
use serde_json::{Value, json};

use crate::compatibility::check_table;
use crate::support::{TestServer, engine_at};

/// A field, a request that has it, and the names under which an engine gets it.
struct Row {
    field: &'static str,
    path: &'static str,
    body: Value,
    names: &'static [&'static str],
}

fn row(field: &'static str, path: &'static str, body: Value, names: &'static [&'static str]) -> Row {
    Row { field, path, body, names }
}

fn text(fields: Value) -> Value {
    let mut body = json!({ "model": "m", "prompt": "a" });
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    body
}

fn rows() -> Vec<Row> {
    const COMPLETIONS: &str = "/v1/completions";
    let ranking = json!({ "model": "m", "query": "q", "documents": ["a", "b"] });
    let message = json!([{ "role": "user", "content": "hi" }]);
    vec![
        row("`prompt`", COMPLETIONS, text(json!({})), &["prompt"]),
        row("`prompt`: several", COMPLETIONS, text(json!({ "prompt": ["a", "b"] })), &["prompt"]),
        row("`prompt`: tokens", COMPLETIONS, text(json!({ "prompt": [1, 2] })), &["prompt"]),
        row("`suffix`", COMPLETIONS, text(json!({ "suffix": "b" })), &["suffix", "input_suffix"]),
        row("`echo`", COMPLETIONS, text(json!({ "echo": true })), &["echo"]),
        row("`echo` with `logprobs`", COMPLETIONS, text(json!({ "echo": true, "logprobs": 1 })), &["echo"]),
        row(
            "`echo` with `logprobs` and `max_tokens: 0`",
            COMPLETIONS,
            text(json!({ "echo": true, "logprobs": 1, "max_tokens": 0 })),
            &["max_tokens"],
        ),
        row("`logprobs`", COMPLETIONS, text(json!({ "logprobs": 1 })), &["logprobs", "n_probs"]),
        row("`n`", COMPLETIONS, text(json!({ "n": 2 })), &["n"]),
        row("`best_of`", COMPLETIONS, text(json!({ "best_of": 2 })), &["best_of"]),
        row("`stream`", COMPLETIONS, text(json!({ "stream": true })), &["stream"]),
        row(
            "`max_tokens`",
            COMPLETIONS,
            text(json!({ "max_tokens": 5 })),
            &["max_tokens", "num_predict", "max_completion_tokens"],
        ),
        row(
            "`temperature`, `top_p`",
            COMPLETIONS,
            text(json!({ "temperature": 0.5, "top_p": 0.9 })),
            &["top_p"],
        ),
        row("`stop`", COMPLETIONS, text(json!({ "stop": ["x"] })), &["stop"]),
        row("`seed`", COMPLETIONS, text(json!({ "seed": 7 })), &["seed"]),
        row(
            "`presence_penalty`, `frequency_penalty`",
            COMPLETIONS,
            text(json!({ "presence_penalty": 0.5 })),
            &["presence_penalty"],
        ),
        row("`logit_bias`", COMPLETIONS, text(json!({ "logit_bias": { "5": 1 } })), &["logit_bias"]),
        row(
            "`response_format`",
            COMPLETIONS,
            text(json!({ "response_format": { "type": "json_object" } })),
            &["response_format", "json_schema", "format"],
        ),
        row("`top_k`", COMPLETIONS, text(json!({ "top_k": 3 })), &["top_k"]),
        row("`POST /v1/rerank`", "/v1/rerank", ranking, &["documents"]),
        row("`POST /tokenize`", "/tokenize", json!({ "model": "m", "prompt": "hi" }), &["prompt", "content"]),
        row(
            "`POST /tokenize` with `messages`",
            "/tokenize",
            json!({ "model": "m", "messages": message }),
            &["messages"],
        ),
        row(
            "`POST /tokenize` with `with_pieces`",
            "/tokenize",
            json!({ "model": "m", "content": "hi", "with_pieces": true }),
            &["with_pieces", "return_token_strs"],
        ),
        row("`POST /detokenize`", "/detokenize", json!({ "model": "m", "tokens": [1, 2] }), &["tokens"]),
        row(
            "`POST /v1/audio/speech`",
            "/v1/audio/speech",
            json!({ "model": "m", "input": "hi", "voice": "a" }),
            &["voice"],
        ),
        row(
            "`POST /v1/images/generations`",
            "/v1/images/generations",
            json!({ "model": "m", "prompt": "a" }),
            &["prompt"],
        ),
    ]
}

/// Answers as each engine does, at whatever path it has.
fn answer(request: &Recorded) -> Reply {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let count = |name: &str| body[name].as_u64().unwrap_or(1);
    let ok = |body: Value| Reply::json(200, body.to_string());
    let streamed = body["stream"] == true;
    match request.path.as_str() {
        "/v1/models" => ok(json!({ "data": [{ "id": "m" }] })),
        "/api/tags" => ok(json!({ "models": [{ "name": "m" }] })),
        "/v1/completions" if streamed => Reply::sse(
            "data: {\"choices\":[{\"index\":0,\"text\":\"x\",\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
        ),
        "/v1/chat/completions" if streamed => Reply::sse(
            "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
        ),
        "/v1/completions" => {
            let logprobs = json!({ "tokens": ["x"], "token_logprobs": [-1.0], "top_logprobs": [{}] });
            let choice =
                |index| json!({ "index": index, "text": "x", "finish_reason": "stop", "logprobs": logprobs });
            ok(json!({ "model": "m", "choices": (0..count("n")).map(choice).collect::<Vec<_>>() }))
        }
        "/v1/chat/completions" => {
            let choice = |_| json!({ "message": { "content": "x" }, "finish_reason": "stop" });
            ok(json!({ "model": "m", "choices": (0..count("n")).map(choice).collect::<Vec<_>>() }))
        }
        "/infill" => ok(json!({ "content": "x", "stop": true, "stop_type": "eos" })),
        "/api/generate" => {
            let line = json!({ "model": "m", "response": "x", "done": true, "done_reason": "stop", "logprobs": [{ "token": "x", "logprob": -1.0 }] });
            Reply::ndjson(format!("{line}\n"))
        }
        "/tokenize" if body["prompt"].as_str().is_some_and(|text| text.starts_with("<|fim_")) => {
            ok(json!({ "tokens": [1], "count": 1 }))
        }
        "/tokenize" if body["with_pieces"] == true => ok(json!({ "tokens": [{ "id": 1, "piece": "hi" }] })),
        "/tokenize" if body["return_token_strs"] == true => {
            ok(json!({ "tokens": [1], "token_strs": ["hi"] }))
        }
        "/tokenize" => ok(json!({ "tokens": [1, 2] })),
        "/apply-template" => ok(json!({ "prompt": "hi" })),
        "/detokenize" => ok(json!({ "content": "hi", "prompt": "hi", "text": "hi" })),
        "/v1/rerank" if request.header("authorization").is_none() => ok(
            json!({ "results": [{ "index": 0, "relevance_score": 1.0 }, { "index": 1, "relevance_score": 0.5 }] }),
        ),
        "/api/embed" => ok(json!({ "model": "m", "embeddings": [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]] })),
        "/v1/embeddings" => {
            let vector = |index| json!({ "index": index, "embedding": [1.0, 0.0] });
            ok(json!({ "model": "m", "data": (0..3).map(vector).collect::<Vec<_>>() }))
        }
        "/v1/audio/speech" | "/v1/images/generations" => ok(json!({ "data": [] })),
        _ => Reply::json(404, r#"{"detail":"Not Found"}"#),
    }
}

/// Every engine that Hob talks to.
fn engines(fake: &FakeServer) -> Vec<(&'static str, Arc<dyn Engine>)> {
    let endpoint = Endpoint::new(EndpointOptions::new("ollama", fake.url())).unwrap();
    let openai = Provider { host: format!("{}/v1", fake.url()), key: Some("k".to_owned().into()) };
    let cloud = Cloud::new(CloudOptions { openai, ..CloudOptions::default() }).unwrap();
    vec![
        ("llama.cpp", engine_at(fake, Style::LLAMACPP)),
        ("vLLM", engine_at(fake, Style::VLLM)),
        ("SGLang", engine_at(fake, Style::SGLANG)),
        ("LiteLLM", engine_at(fake, Style::LITELLM)),
        ("Ollama", Arc::new(Ollama::new(endpoint))),
        ("OpenAI", Arc::new(cloud)),
    ]
}

/// Whether an object anywhere in a body has a field of one of these names.
fn has(value: &Value, names: &[&str]) -> bool {
    match value {
        Value::Object(fields) => {
            fields.iter().any(|(name, field)| names.contains(&name.as_str()) || has(field, names))
        }
        Value::Array(items) => items.iter().any(|item| has(item, names)),
        _ => false,
    }
}

/// The effect of a request: the engine gets the field, or Hob ignores it.
async fn outcome(row: &Row, server: &TestServer, fake: &FakeServer) -> &'static str {
    let before = fake.requests().len();
    let response = server.client.post(server.url(row.path)).json(&row.body).send().await.unwrap();
    let warned: Vec<String> = response
        .headers()
        .get_all("x-hob-warning")
        .iter()
        .map(|warning| warning.to_str().unwrap().to_owned())
        .collect();
    let status = response.status();
    let body = response.text().await.unwrap();
    if status != 200 {
        assert!(body.contains("\"param\":\""), "{}: an error names the field: {body}", row.field);
        return "refused";
    }
    assert!(!body.contains("\"error\""), "{}: {body}", row.field);
    if warned.iter().any(|warning| warning.starts_with("ignored=")) {
        return "ignored with a warning";
    }
    let sent = &fake.requests()[before..];
    // What was tried before the way that worked does not count.
    let last = sent.iter().rfind(|request| request.method == "POST");
    let body: Value = last.and_then(|last| serde_json::from_slice(&last.body).ok()).unwrap_or_default();
    if has(&body, row.names) { "yes" } else { "emulated" }
}

/// Regenerate with `HOB_WRITE_DOCS=1 cargo nextest run --workspace the_table_of_the_fields_of_completions`.
#[tokio::test]
async fn the_table_of_the_fields_of_completions_is_true() {
    let fake = FakeServer::start(answer).await;
    let mut servers = Vec::new();
    for (name, engine) in engines(&fake) {
        servers.push((name, TestServer::start(engine).await));
    }
    let names: Vec<&str> = servers.iter().map(|(name, _)| *name).collect();
    let mut table = format!("\n| | {} |\n| --- |{}\n", names.join(" | "), " --- |".repeat(names.len()));
    for row in rows() {
        write!(table, "| {} |", row.field).unwrap();
        for (_, server) in &servers {
            write!(table, " {} |", outcome(&row, server, &fake).await).unwrap();
        }
        table.push('\n');
    }
    table.push('\n');
    check_table("completions", "the_table_of_the_fields_of_completions", &table);
}

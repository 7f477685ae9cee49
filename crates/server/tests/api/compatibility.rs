//! The tables of `docs/api-compatibility.md`: what becomes of each field of an API, with each engine. Every field is sent to every
//! engine. The engines are those of Hob, with a fake server behind them; the embedded one has a real model for text.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use hob_core::Engine;
use hob_engines::{Cloud, CloudOptions, Endpoint, EndpointOptions, Ollama, Provider, Style};
use hob_llama::{LlamaEngine, LlamaOptions};
use hob_testkit::{BriefEngine, FakeServer, Recorded, Reply, link_model, part};
use reqwest::Response;
use serde_json::{Value, json};

use crate::support::engine_at;

/// A field, a request that has it, and a remark.
pub type Row = (&'static str, Value, &'static str);

/// An engine, and the model that is asked.
pub struct AskedEngine {
    pub name: &'static str,
    pub model: &'static str,
    pub engine: Arc<dyn Engine>,
}

/// Every engine.
pub fn all_engines(fake: &FakeServer) -> Vec<AskedEngine> {
    let provider =
        |path: &str| Provider { host: format!("{}{path}", fake.url()), key: Some("k".to_owned().into()) };
    let cloud = |options: CloudOptions| -> Arc<dyn Engine> { Arc::new(Cloud::new(options).unwrap()) };
    let asked = |name, model, engine| AskedEngine { name, model, engine };
    let ollama = Endpoint::new(EndpointOptions::new("ollama", fake.url())).unwrap();
    vec![
        asked("ollama", "m", Arc::new(Ollama::new(ollama))),
        asked("vllm", "m", engine_at(fake, Style::VLLM)),
        asked("sglang", "m", engine_at(fake, Style::SGLANG)),
        asked("llamacpp", "m", engine_at(fake, Style::LLAMACPP)),
        asked("litellm", "m", engine_at(fake, Style::LITELLM)),
        asked("embedded", "m", embedded()),
        asked("openai", "m", cloud(CloudOptions { openai: provider("/v1"), ..CloudOptions::default() })),
        asked(
            "anthropic",
            "claude-m",
            cloud(CloudOptions { anthropic: provider(""), ..CloudOptions::default() }),
        ),
        asked("gemini", "gemini-m", cloud(CloudOptions { gemini: provider(""), ..CloudOptions::default() })),
    ]
}

/// The embedded engine. It lives as long as the tests, because their servers share it.
fn embedded() -> Arc<dyn Engine> {
    static EMBEDDED: LazyLock<Arc<dyn Engine>> = LazyLock::new(|| {
        let models = Path::new(env!("CARGO_TARGET_TMPDIR")).join("models-of-server");
        link_model(&models, "m", Path::new(&part("HOB_TEST_SHORT_MODEL")));
        let options = LlamaOptions { threads: 1, ..LlamaOptions::new(models) };
        Arc::new(BriefEngine(Arc::new(LlamaEngine::new(options))))
    });
    Arc::clone(&EMBEDDED)
}

/// The server behind the engines. It answers `{}`, which is text, JSON, and the arguments of a call.
pub async fn fake_engine() -> FakeServer {
    FakeServer::start(answer).await
}

fn answer(request: &Recorded) -> Reply {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let ok = |body: Value| Reply::json(200, body.to_string());
    let sse = |events: &[Value]| {
        let events: Vec<String> = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        Reply::sse(events.concat())
    };
    let chunk =
        |choice: Value| Reply::sse(format!("data: {}\n\ndata: [DONE]\n\n", json!({ "choices": [choice] })));
    let path = request.path.split('?').next().unwrap_or_default();
    match (path, body["stream"] == true) {
        ("/v1/models", _) => {
            ok(json!({ "data": [{ "id": "m", "object": "model" }, { "id": "claude-m", "type": "model" }] }))
        }
        ("/api/tags", _) => ok(json!({ "models": [{ "name": "m", "model": "m" }] })),
        ("/api/ps", _) => ok(json!({ "models": [] })),
        ("/api/show", _) => ok(json!({ "capabilities": ["completion", "tools", "thinking", "vision"] })),
        ("/api/chat", _) => {
            let line =
                json!({ "model": "m", "message": { "content": "{}" }, "done": true, "done_reason": "stop" });
            Reply::ndjson(format!("{line}\n"))
        }
        ("/api/generate", _) => {
            let line = json!({ "model": "m", "response": "{}", "done": true, "done_reason": "stop" });
            Reply::ndjson(format!("{line}\n"))
        }
        ("/v1/chat/completions", true) => {
            chunk(json!({ "index": 0, "delta": { "content": "{}" }, "finish_reason": "stop" }))
        }
        ("/v1/chat/completions", false) => {
            ok(json!({ "choices": [{ "message": { "content": "{}" }, "finish_reason": "stop" }] }))
        }
        ("/v1/completions", true) => chunk(json!({ "index": 0, "text": "{}", "finish_reason": "stop" })),
        ("/v1/completions", false) => {
            ok(json!({ "choices": [{ "index": 0, "text": "{}", "finish_reason": "stop" }] }))
        }
        ("/infill", _) => ok(json!({ "content": "{}", "stop": true, "stop_type": "eos" })),
        ("/tokenize", _) => ok(json!({ "tokens": [1], "count": 1 })),
        ("/v1/messages", false) => ok(json!({
            "type": "message", "role": "assistant", "content": [{ "type": "text", "text": "{}" }], "stop_reason": "end_turn",
        })),
        ("/v1/messages", true) => sse(&[
            json!({ "type": "message_start", "message": { "role": "assistant" } }),
            json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "{}" } }),
            json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" } }),
            json!({ "type": "message_stop" }),
        ]),
        ("/v1beta/models", _) => {
            let methods = ["generateContent"];
            ok(json!({ "models": [{ "name": "models/gemini-m", "supportedGenerationMethods": methods }] }))
        }
        (path, _) if path.starts_with("/v1beta/models/") => {
            let candidate = json!({ "content": { "role": "model", "parts": [{ "text": "{}" }] }, "finishReason": "STOP" });
            let answer = json!({ "candidates": [candidate] });
            if path.ends_with(":streamGenerateContent") { sse(&[answer]) } else { ok(answer) }
        }
        _ => Reply::json(404, r#"{"detail":"Not Found"}"#),
    }
}

/// What became of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    Yes,
    Emulated,
    Ignored,
    Refused,
}

impl Outcome {
    /// What an answer says. An error that names no field is none of the caller's.
    pub async fn of(response: Response, field: &str) -> Self {
        let is_ignored = |value: &&reqwest::header::HeaderValue| value.as_bytes().starts_with(b"ignored=");
        let has_ignored = response.headers().get_all("x-hob-warning").iter().any(|value| is_ignored(&value));
        match response.status().as_u16() {
            200 if has_ignored => Outcome::Ignored,
            200 => Outcome::Yes,
            status => {
                let body = response.text().await.unwrap();
                assert!((400..500).contains(&status) || status == 501, "{field}: {status} {body}");
                Outcome::Refused
            }
        }
    }

    fn in_words(self) -> &'static str {
        match self {
            Outcome::Yes => "yes",
            Outcome::Emulated => "emulated",
            Outcome::Ignored => "ignored with a warning",
            Outcome::Refused => "refused",
        }
    }
}

/// A row of a table. A remark that begins with `emulated: ` says that no engine has the field.
pub fn table_row((field, _, about): &Row, outcomes: &[(&'static str, Outcome)]) -> String {
    let (worked, about) = match about.strip_prefix("emulated: ") {
        Some(about) => (Outcome::Emulated, about),
        None => (Outcome::Yes, *about),
    };
    let outcomes: Vec<_> = outcomes
        .iter()
        .map(|(engine, outcome)| (*engine, if *outcome == Outcome::Yes { worked } else { *outcome }))
        .collect();
    let told = [Outcome::Yes, Outcome::Emulated, Outcome::Ignored, Outcome::Refused].map(|kind| {
        let same = outcomes.iter().filter(|(_, outcome)| *outcome == kind);
        let same: Vec<&str> = same.map(|(engine, _)| *engine).collect();
        match same.len() {
            0 => None,
            all if all == outcomes.len() => Some(kind.in_words().to_owned()),
            _ => Some(format!("{}: {}", kind.in_words(), same.join(", "))),
        }
    });
    let told: Vec<String> = told.into_iter().flatten().collect();
    format!("| {field} | {} | {about} |\n", told.join("; "))
}

/// Compares a table with the page, or writes it there. `name` marks it; `test` makes it.
pub fn check_table(name: &str, test: &str, table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/api-compatibility.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (start, end) = (format!("<!-- {name}: "), format!("<!-- /{name} -->"));
    let begins = page.find(&start).expect("the table's beginning is marked");
    let begins = begins + page[begins..].find("-->\n").expect("the mark ends") + 4;
    let ends = page.find(&end).expect("the table's end is marked");
    if std::env::var_os("HOB_WRITE_DOCS").is_some() {
        std::fs::write(&path, format!("{}{table}{}", &page[..begins], &page[ends..])).unwrap();
    } else {
        assert_eq!(&page[begins..ends], table, "run: HOB_WRITE_DOCS=1 cargo nextest run --workspace {test}");
    }
}

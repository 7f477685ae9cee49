//! Hostile schemas and requests against the embedded engine with a real model: each is answered or refused, and the engine
//! continues.
#![expect(clippy::expect_used, reason = "a test that cannot set itself up should fail loudly")]
#![cfg(unix)]

use std::path::PathBuf;
use std::sync::Arc;

use futures::StreamExt;
use hob_core::{
    AnswerWarning, Engine, EngineError, FinishReason, GenerateRequest, JsonSchema, MaxTokens, Message,
    ResponseFormat, Role, Sampling, Temperature, ToolChoice, ToolDefinition,
};
use hob_llama::{LlamaEngine, LlamaOptions};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::sync::OnceCell;

const MODEL: &str = "model";

fn models_dir() -> TempDir {
    let file = std::env::var_os("HOB_TEST_MODEL")
        .expect("HOB_TEST_MODEL is not set: these tests need a real model. Run them with './dev test'.");
    let dir = TempDir::new().expect("a directory for models");
    std::os::unix::fs::symlink(PathBuf::from(file), dir.path().join("model.gguf"))
        .expect("a link to the model");
    dir
}

fn options(dir: &TempDir) -> LlamaOptions {
    // Tests run side by side; more threads than cores only wait for each other.
    LlamaOptions { context: Some(1024), threads: 1, ..LlamaOptions::new(dir.path()) }
}

/// One engine for all tests, so that each meets what the others left behind.
async fn engine() -> Arc<LlamaEngine> {
    static ENGINE: OnceCell<(TempDir, Arc<LlamaEngine>)> = OnceCell::const_new();
    let made = async || {
        let dir = models_dir();
        let engine = Arc::new(LlamaEngine::new(options(&dir)));
        (dir, engine)
    };
    Arc::clone(&ENGINE.get_or_init(made).await.1)
}

fn ask(question: &str, max_tokens: i64) -> GenerateRequest {
    GenerateRequest {
        model: MODEL.into(),
        messages: vec![Message::new(Role::User, question)],
        temperature: Some(Temperature::new(0.0).expect("zero is allowed")),
        max_tokens: Some(MaxTokens::new(max_tokens).expect("positive")),
        ..GenerateRequest::default()
    }
}

fn in_form(schema: &Value, question: &str, max_tokens: i64) -> GenerateRequest {
    let wanted = JsonSchema { name: "x".into(), description: None, schema: schema.clone(), strict: None };
    GenerateRequest { response_format: ResponseFormat::JsonSchema(wanted), ..ask(question, max_tokens) }
}

fn as_tool(schema: &Value, question: &str, max_tokens: i64) -> GenerateRequest {
    let tool = ToolDefinition {
        name: "f".into(),
        description: None,
        parameters: Some(schema.clone()),
        strict: None,
    };
    GenerateRequest {
        tools: vec![tool],
        tool_choice: Some(ToolChoice::Required),
        ..ask(question, max_tokens)
    }
}

async fn still_answers(engine: &LlamaEngine) {
    let answer = engine.generate(&ask("What is the capital of France? Answer in one sentence.", 16)).await;
    let content = answer.expect("an answer").answer.content;
    assert!(content.contains("Paris"), "{content}");
}

/// The field that a refusal names.
fn named(error: &EngineError) -> Option<&str> {
    match error {
        EngineError::Refused { status: 400, param, .. } => param.as_deref(),
        _ => None,
    }
}

/// Schemas that stopped or hung a server.
fn deadly() -> Vec<Value> {
    let many: Map<String, Value> = (0..6000).map(|n| (format!("p{n}"), json!({"type": "string"}))).collect();
    let mut chain: Map<String, Value> =
        (0..5000).map(|n| (n.to_string(), json!({"$ref": format!("#/$defs/{}", n + 1)}))).collect();
    chain.insert("5000".into(), json!({"type": "object"}));
    let mut deep = json!({"type": "object"});
    for _ in 0..120 {
        deep = json!({"type": "object", "properties": {"a": deep}});
    }
    vec![
        json!({"$ref": "#"}),
        json!({"type": "object", "properties": many}),
        json!({"$defs": chain, "$ref": "#/$defs/0"}),
        deep,
        json!({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}),
    ]
}

#[tokio::test]
async fn schemas_that_stopped_a_server_are_refused_with_their_field() {
    let engine = engine().await;
    for schema in deadly() {
        let error = engine.generate(&in_form(&schema, "Hello", 4)).await.expect_err("refused");
        assert_eq!(named(&error), Some("response_format"), "{error}");
        let error = engine.generate(&as_tool(&schema, "Hello", 4)).await.expect_err("refused");
        assert_eq!(named(&error), Some("tools[0]"), "{error}");
        still_answers(&engine).await;
    }
}

#[tokio::test]
async fn alternatives_that_double_are_answered_in_time() {
    let mut doubling = json!({"$defs": {"48": {"type": "null"}}, "$ref": "#/$defs/0"});
    for n in 0..48 {
        let next = format!("#/$defs/{}", n + 1);
        doubling["$defs"][n.to_string()] = json!({"anyOf": [{"$ref": next}, {"$ref": next}]});
    }
    let engine = engine().await;
    let answer = engine.generate(&in_form(&doubling, "Hello", 8)).await.expect("an answer").answer;
    assert_eq!(answer.content, "null");
}

#[tokio::test]
async fn a_schema_that_refers_to_itself_is_enforced() {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string", "maxLength": 8},
        "children": {"type": "array", "items": {"$ref": "#"}, "maxItems": 1}}, "required": ["name", "children"],
        "additionalProperties": false});
    let answer =
        engine().await.generate(&in_form(&schema, "A family tree.", 200)).await.expect("an answer").answer;
    if answer.finish_reason == FinishReason::Stop {
        let value = serde_json::from_str(&answer.content).expect("JSON");
        assert!(jsonschema::is_valid(&schema, &value), "{value}");
    }
    assert!(answer.content.starts_with("{"), "{}", answer.content);
}

#[tokio::test]
async fn bounds_of_numbers_are_enforced_against_the_question() {
    for (schema, question) in [
        (json!({"type": "number", "minimum": 0}), "Answer with the number -1 and nothing else."),
        (
            json!({"type": "integer", "minimum": 3, "maximum": 5}),
            "Answer with the number 1000 and nothing else.",
        ),
        (json!({"type": "number", "multipleOf": 0.5, "exclusiveMinimum": 0, "maximum": 3}), "What is 1.3?"),
        (json!({"type": "string", "format": "date"}), "Answer with the words: no date."),
        (json!({"type": "string", "pattern": "^\\d{3}-[a-f]+$", "maxLength": 8}), "Say hello."),
    ] {
        let answer =
            engine().await.generate(&in_form(&schema, question, 40)).await.expect("an answer").answer;
        // A model may write decimals until it is stopped; what it wrote is a number all the same.
        let cut = answer.finish_reason == FinishReason::Length && schema["type"] == "number";
        assert!(cut || answer.finish_reason == FinishReason::Stop, "{schema}: {}", answer.content);
        let value = serde_json::from_str(&answer.content).expect("JSON");
        let valid = jsonschema::options().should_validate_formats(true).build(&schema).expect("valid");
        assert!(valid.is_valid(&value), "{value} for {schema}");
    }
}

#[tokio::test]
async fn unenforced_keywords_are_checked_before_anything_is_sent() {
    let engine = engine().await;
    // No value follows it, which no grammar can know.
    let impossible = json!({"type": "integer", "minimum": 1, "maximum": 9, "not": {"type": "integer"}});
    let error = engine.generate(&in_form(&impossible, "Say a number.", 8)).await.expect_err("no answer");
    assert!(matches!(error, EngineError::Malformed { .. }) && error.to_string().contains("'not'"), "{error}");
    assert!(engine.stream(&in_form(&impossible, "Say a number.", 8)).await.is_err(), "not a piece of it");
    let mut tool = impossible.clone();
    tool = json!({"type": "object", "properties": {"n": tool}, "required": ["n"], "additionalProperties": false});
    let error = engine.generate(&as_tool(&tool, "Say a number.", 40)).await.expect_err("no call");
    assert!(error.to_string().contains("the arguments of 'f'"), "{error}");

    let possible = json!({"type": "integer", "minimum": 1, "maximum": 9, "not": {"const": 100}});
    let mut stream = engine.stream(&in_form(&possible, "Say a number.", 8)).await.expect("an answer").deltas;
    let mut collector = hob_core::Collector::default();
    while let Some(delta) = stream.next().await {
        collector.push(delta.expect("no error"));
    }
    let answer = collector.finish(MODEL).expect("finished").answer;
    assert!(matches!(answer.content.parse::<u8>(), Ok(1..=9)), "{}", answer.content);
}

#[tokio::test]
async fn unsupported_keywords_are_refused_by_name() {
    let engine = engine().await;
    for (schema, keyword) in [
        (json!({"type": "object", "unevaluatedProperties": false}), "unevaluatedProperties"),
        (
            json!({"type": "object", "properties": {"a": {"$ref": "https://example.org/x"}}}),
            "https://example.org/x",
        ),
    ] {
        let error = engine.generate(&in_form(&schema, "Hello", 4)).await.expect_err("refused");
        let EngineError::Refused { status: 400, message, code, param, .. } = &error else {
            panic!("{error}")
        };
        assert!(message.contains(keyword), "{message}");
        assert_eq!(
            (code.as_deref(), param.as_deref()),
            (Some("unsupported_by_engine"), Some("response_format"))
        );
        // A tool that is only offered is no promise, and must not spoil the others.
        let offered = GenerateRequest { tool_choice: None, ..as_tool(&schema, "Hello", 4) };
        engine.generate(&offered).await.expect("an answer");
    }
}

#[tokio::test]
async fn huge_numbers_are_harmless() {
    let engine = engine().await;
    let biases: Map<String, Value> = (0..60_000).map(|n| (n.to_string(), json!(-1e300))).collect();
    for (field, value) in [
        ("top_k", json!(4_611_686_018_427_387_904_i64)),
        ("top_k", json!(i64::MAX)),
        ("top_k", json!(-5)),
        ("repeat_last_n", json!(u64::MAX)),
        ("logit_bias", json!({"-1": 1e300, "2147483647": -1e300, "5": 1e300})),
        ("logit_bias", Value::Object(biases)),
    ] {
        let request = GenerateRequest {
            extra: Map::from_iter([(field.to_owned(), value)]),
            temperature: Some(Temperature::new(1.0).expect("allowed")),
            ..ask("Hello", 3)
        };
        engine.generate(&request).await.expect("an answer");
    }
    for value in [json!(1e300), json!(1e-300), json!(-1)] {
        let extra = Map::from_iter([("repeat_penalty".to_owned(), value)]);
        let error =
            engine.generate(&GenerateRequest { extra, ..ask("Hello", 3) }).await.expect_err("refused");
        assert_eq!(named(&error), Some("repeat_penalty"), "{error}");
    }
    still_answers(&engine).await;
}

#[tokio::test]
async fn an_undocumented_field_is_ignored_and_named() {
    let extra = Map::from_iter([("future_field".to_owned(), json!([1]))]);
    let generation =
        engine().await.generate(&GenerateRequest { extra, ..ask("Hello", 1) }).await.expect("an answer");
    assert_eq!(generation.warnings, [AnswerWarning::Ignored("future_field".into())]);
}

#[tokio::test]
async fn memory_grows_with_the_requests() {
    let dir = models_dir();
    let engine = Arc::new(LlamaEngine::new(LlamaOptions {
        context: None,
        threads: 2,
        ..LlamaOptions::new(dir.path())
    }));
    // Together more than a model begins with, while others are being answered.
    let capitals = [("France", "Paris"), ("Italy", "Rome"), ("Spain", "Madrid"), ("Japan", "Tokyo")];
    let filler = "The sea is wide and blue. ".repeat(60);
    let running = capitals.map(|(country, capital)| {
        let engine = Arc::clone(&engine);
        let question = format!("{filler}\nWhat is the capital of {country}? Answer in one sentence.");
        tokio::spawn(async move {
            let answer = engine.generate(&ask(&question, 1024)).await.expect("an answer").answer;
            assert!(answer.content.contains(capital), "{country}: {}", answer.content);
        })
    });
    for answer in running {
        answer.await.expect("its own answer");
    }
}

#[tokio::test]
async fn a_prompt_that_was_read_ahead_is_not_read_again() {
    let dir = models_dir();
    let engine = LlamaEngine::new(options(&dir));
    let system = Message::new(Role::System, "You are a helpful assistant of few words. ".repeat(20));
    let ahead = GenerateRequest { messages: vec![system.clone()], ..ask("", 1) };
    engine.warm(&ahead).await.expect("read");
    let read = engine.computed_tokens();
    let mut request = ask("Hello", 1);
    request.messages.insert(0, system);
    let usage = engine.generate(&request).await.expect("an answer").usage.expect("usage");
    let cached = usage.cached_tokens.expect("told");
    assert!(read > 150 && cached + 20 >= usage.prompt_tokens, "{cached} of {} tokens", usage.prompt_tokens);
    // Reading ahead blocks no request, and leaves nothing behind when cancelled.
    let long = GenerateRequest {
        messages: vec![Message::new(Role::System, "Once upon a time. ".repeat(150))],
        ..ask("", 1)
    };
    let hello = ask("Hello", 1);
    let (warmed, answered) = tokio::join!(engine.warm(&long), engine.generate(&hello));
    warmed.expect("given up or done");
    answered.expect("an answer");
}

/// Generates unusual schemas and requests.
struct Nasty(fastrand::Rng);

impl Nasty {
    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.0.usize(..of.len())]
    }

    fn word(&mut self) -> String {
        let words = [
            "",
            "a",
            "b",
            "$ref",
            "#",
            "/",
            "~1",
            "é",
            "日本",
            "\u{0}",
            "\\",
            "\"",
            "properties",
            "x".repeat(70).leak(),
        ];
        (0..self.0.usize(..3)).map(|_| *self.pick(&words)).collect()
    }

    fn number(&mut self) -> Value {
        let numbers = [
            json!(0),
            json!(-1),
            json!(1),
            json!(7),
            json!(0.1),
            json!(-2.5),
            json!(1e300),
            json!(-1e300),
            json!(1e-300),
            json!(u64::MAX),
            json!(i64::MIN),
            json!(1_000_000_000),
            json!(65_535),
            json!(0.333_333_333),
        ];
        self.pick(&numbers).clone()
    }

    fn pattern(&mut self) -> String {
        let parts = [
            "^", "$", "a", "\\d", "\\w+", "\\s*", "[a-z]", "[^", "(", ")", "|", "{2}", "{0,1000}", "{1000}",
            "+", "*", "?", ".", "\\b", "(?=a)", "\\p{L}", "(a|b)", "(?i)", "\\1", "[\\w-]",
        ];
        (0..self.0.usize(..8)).map(|_| *self.pick(&parts)).collect()
    }

    fn value(&mut self, depth: usize) -> Value {
        match self.0.u8(..if depth > 2 { 5 } else { 7 }) {
            0 => Value::Null,
            1 => self.0.bool().into(),
            2 | 3 => self.number(),
            4 => self.word().into(),
            5 => (0..self.0.usize(..4)).map(|_| self.value(depth + 1)).collect(),
            _ => {
                Value::Object((0..self.0.usize(..4)).map(|_| (self.word(), self.value(depth + 1))).collect())
            }
        }
    }

    fn schema(&mut self, depth: usize) -> Value {
        if self.0.u8(..40) == 0 {
            return self.value(0);
        }
        if depth > 4 || self.0.u8(..12) == 0 {
            return json!({"type": *self.pick(&["string", "integer", "null", "number", "boolean", "object", "array"])});
        }
        const KEYWORDS: [&str; 44] = [
            "type",
            "type",
            "type",
            "properties",
            "properties",
            "properties",
            "required",
            "additionalProperties",
            "patternProperties",
            "items",
            "prefixItems",
            "anyOf",
            "anyOf",
            "oneOf",
            "allOf",
            "allOf",
            "$ref",
            "$ref",
            "$defs",
            "const",
            "enum",
            "minLength",
            "maxLength",
            "minItems",
            "maxItems",
            "minimum",
            "maximum",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "multipleOf",
            "pattern",
            "format",
            "uniqueItems",
            "not",
            "if",
            "then",
            "contains",
            "minProperties",
            "maxProperties",
            "propertyNames",
            "dependentSchemas",
            "unevaluatedProperties",
            "$id",
            "x-guidance",
        ];
        let mut fields = Map::new();
        for _ in 0..self.0.usize(1..5) {
            let keyword = *self.pick(&KEYWORDS);
            let value = if self.0.u8(..30) == 0 { self.value(0) } else { self.keyword(keyword, depth) };
            fields.insert(keyword.to_owned(), value);
        }
        Value::Object(fields)
    }

    fn keyword(&mut self, keyword: &str, depth: usize) -> Value {
        match keyword {
            "type" => {
                let types = ["string", "integer", "null", "number", "boolean", "object", "array", "any"];
                if self.0.u8(..4) == 0 {
                    (0..self.0.usize(..3)).map(|_| Value::from(*self.pick(&types))).collect()
                } else {
                    (*self.pick(&types[..7])).into()
                }
            }
            "properties" | "$defs" | "patternProperties" | "dependentSchemas" => {
                let many = if self.0.u8(..60) == 0 { 300 } else { 4 };
                let count = self.0.usize(..many);
                let named = |nasty: &mut Self, n: usize| match nasty.0.u8(..3) {
                    0 => nasty.word(),
                    1 => format!("p{n}"),
                    _ => (*nasty.pick(&["a", "b", "c"])).to_owned(),
                };
                let fields =
                    (0..count).map(|n| (named(self, n), self.schema(depth + 1 + count / 8))).collect();
                Value::Object(fields)
            }
            "items"
            | "additionalProperties"
            | "not"
            | "if"
            | "then"
            | "contains"
            | "propertyNames"
            | "unevaluatedProperties" => self.schema(depth + 1),
            "prefixItems" | "anyOf" | "oneOf" | "allOf" => {
                (0..self.0.usize(..5)).map(|_| self.schema(depth + 1)).collect()
            }
            "$ref" => (*self.pick(&[
                "#",
                "#",
                "#/$defs/a",
                "#/$defs/b",
                "#/properties/a",
                "#/anyOf/0",
                "#/items",
                "#/allOf/1/properties/b",
                "#/",
                "http://x/y",
                "#%",
            ]))
            .into(),
            "required" => {
                (0..self.0.usize(..4)).map(|_| Value::from(*self.pick(&["a", "b", "c", "p0"]))).collect()
            }
            "const" => self.value(0),
            "enum" => {
                let many = if self.0.u8(..60) == 0 { 500 } else { 5 };
                (0..self.0.usize(..many)).map(|_| self.value(1)).collect()
            }
            "pattern" => self.pattern().into(),
            "format" => {
                (*self.pick(&["date", "date-time", "email", "ipv6", "regex", "uri", "int32", "duration", ""]))
                    .into()
            }
            "uniqueItems" => self.0.bool().into(),
            "x-guidance" => json!({"lenient": true, "whitespace_pattern": "x*"}),
            "$id" => "http://example.org/".into(),
            _ => self.number(),
        }
    }

    fn request(&mut self) -> GenerateRequest {
        let schema = self.schema(0);
        let question = self.word();
        let mut request = match self.0.u8(..5) {
            0 => as_tool(&schema, &question, 3),
            1 => GenerateRequest { tool_choice: None, ..as_tool(&schema, &question, 3) },
            _ => in_form(&schema, &question, 3),
        };
        request.temperature = Some(Temperature::new(f64::from(self.0.u8(..3))).expect("allowed"));
        if self.0.u8(..4) == 0 {
            request.sampling = Sampling {
                stop: (0..self.0.usize(..5)).map(|_| self.word()).collect(),
                seed: Some(self.0.i64(..)),
                n: std::num::NonZeroU32::new(self.0.u32(..4)),
                logprobs: self.0.bool(),
                ..Sampling::default()
            };
            for field in ["top_k", "min_p", "repeat_penalty", "repeat_last_n"] {
                if self.0.bool() {
                    request.extra.insert(field.into(), self.number());
                }
            }
        }
        request
    }
}

/// What came of generated requests.
#[derive(Debug, Default)]
struct Tally {
    accepted: usize,
    refused: usize,
    checked: usize,
}

/// Sends generated requests. Of those that are accepted, every `whole`th is answered to its end; the others hang up.
async fn send_generated(count: u64, seed: u64, whole: u64) -> Tally {
    let dir = models_dir();
    let engine = LlamaEngine::new(LlamaOptions { threads: 2, ..options(&dir) });
    let mut tally = Tally::default();
    for n in 0..count {
        let mut nasty = Nasty(fastrand::Rng::with_seed(seed.wrapping_add(n)));
        let request = nasty.request();
        let outcome = if n % whole == 0 {
            engine.generate(&request).await.map(drop)
        } else {
            engine.stream(&request).await.map(drop)
        };
        match outcome {
            Ok(()) => tally.accepted += 1,
            Err(
                EngineError::Refused { status: 400, param: Some(_), .. } | EngineError::Unsupported { .. },
            ) => tally.refused += 1,
            // An answer that follows no schema, or a form that is too much for the grammar after some tokens.
            Err(EngineError::Malformed { .. } | EngineError::Interrupted { .. }) => tally.checked += 1,
            Err(error) => panic!("request {n} of seed {seed}: {error}\n{request:?}"),
        }
        if n % 2_000 == 1_999 {
            still_answers(&engine).await;
            eprintln!("{} requests: {tally:?}", n + 1);
        }
    }
    still_answers(&engine).await;
    tally
}

#[tokio::test]
async fn generated_schemas_and_requests_leave_the_engine_answering() {
    let tally = send_generated(600, 1, 20).await;
    assert!(tally.accepted > 60 && tally.refused > 60, "{tally:?}");
}

/// Takes minutes: `cargo nextest run -p hob-llama --run-ignored only hundred_thousand`.
#[tokio::test]
#[ignore = "takes minutes"]
async fn a_hundred_thousand_generated_requests_leave_the_engine_answering() {
    let tally = send_generated(100_000, 1_000_000, 50).await;
    assert!(tally.accepted > 10_000 && tally.refused > 10_000, "{tally:?}");
}

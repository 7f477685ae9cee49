//! Generated schemas and requests. What is answered to its end follows its schema, by the word of another validator.
//!
//! The long run takes tens of minutes and runs only by itself, with the variables that `./dev test` sets:
//! `cargo nextest run -p hob-llama --run-ignored only hundred_thousand`.

use hob_core::{
    Answer, Engine, EngineError, FinishReason, GenerateRequest, MaxTokens, ResponseFormat, Sampling,
    Temperature, ToolChoice,
};
use hob_llama::LlamaEngine;
use serde_json::{Map, Value, json};

use super::{as_tool, in_form, models_dir, options, still_answers};

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

/// The most tokens of an answer that is not given up. Many end before.
const LONGEST: i64 = 40;

/// Panics if an answer that ended by itself does not follow the schema of its request.
fn check_answer(request: &GenerateRequest, answer: &Answer) {
    let (schema, texts): (&Value, Vec<&str>) =
        match (&request.response_format, &request.tools[..], &request.tool_choice) {
            (ResponseFormat::JsonSchema(wanted), _, _) if answer.finish_reason == FinishReason::Stop => {
                (&wanted.schema, vec![answer.content.as_str()])
            }
            // Arguments are objects, so only the schema of an object is taken as it is.
            (_, [tool], Some(ToolChoice::Required)) if answer.finish_reason == FinishReason::ToolCalls => {
                let Some(schema @ Value::Object(fields)) = &tool.parameters else { return };
                if fields.get("type").is_some_and(|kind| kind != "object") {
                    return;
                }
                (schema, answer.tool_calls.iter().map(|call| call.arguments.as_str()).collect())
            }
            _ => return,
        };
    let Ok(validator) = jsonschema::options().should_validate_formats(true).build(schema) else { return };
    for text in texts {
        match serde_json::from_str::<Value>(text) {
            Ok(value) => assert!(validator.is_valid(&value), "{text} does not follow {schema}"),
            // A number without bounds can be larger than what this reader takes.
            Err(error) => {
                assert!(error.to_string().contains("out of range"), "{error} in {text} for {schema}")
            }
        }
    }
}

/// What came of generated requests.
#[derive(Debug, Default)]
struct Tally {
    accepted: usize,
    refused: usize,
    checked: usize,
    /// Answers that ended by themselves.
    whole: usize,
}

/// Sends generated requests. Of those that are accepted, every `whole`th is answered to its end, and the answer is checked; the others
/// hang up.
async fn send_generated(count: u64, seed: u64, whole: u64) -> Tally {
    let dir = models_dir();
    let engine = LlamaEngine::new(options(&dir));
    let mut tally = Tally::default();
    for n in 0..count {
        let mut nasty = Nasty(fastrand::Rng::with_seed(seed.wrapping_add(n)));
        let mut request = nasty.request();
        let outcome = if n % whole == 0 {
            request.max_tokens = Some(MaxTokens::new(LONGEST).expect("positive"));
            engine.generate(&request).await.map(|generation| {
                for answer in generation.answers() {
                    check_answer(&request, answer);
                    tally.whole += usize::from(answer.finish_reason != FinishReason::Length);
                }
            })
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
    assert!(tally.accepted > 60 && tally.refused > 60 && tally.whole > 0, "{tally:?}");
}

#[tokio::test]
#[ignore = "takes tens of minutes"]
async fn a_hundred_thousand_generated_requests_leave_the_engine_answering() {
    let tally = send_generated(100_000, 1_000_000, 50).await;
    assert!(tally.accepted > 10_000 && tally.refused > 10_000 && tally.whole > 100, "{tally:?}");
}

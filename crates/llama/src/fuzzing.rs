//! Entries for the fuzz targets: answers in the formats of models, chat templates, JSON schemas, and pictures. Each takes any bytes and panics
//! if a promise of the crate is broken. Only in builds with `--cfg fuzzing`.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use hob_core::{Collector, Delta, FinishReason};
use serde_json::{Map, Value, json};

use crate::chat::{AnswerFormat, AnswerParser, AnswerPart, Calling, ChatTemplate, Conversation, Rendered};
use crate::grammar::{Grammar, GrammarText, Spelling, Vocabulary};
use crate::sampler::TokenCandidate;
use crate::schema::{AnswerCheck, Enforceable, Validator};

pub use crate::media::fuzzing::picture;

/// The stack of the threads that read schemas.
const STACK: usize = 256 << 20;

/// The token that ends a text, after those of all bytes.
const END: i32 = 256;

/// Tokens of an answer that a grammar is asked for.
const MAX_TOKENS: usize = 300;

/// An answer. Its first byte chooses a format of `tests/formats`.
pub fn answer(bytes: &[u8]) {
    static FORMATS: LazyLock<Vec<AnswerFormat>> = LazyLock::new(formats);
    let Some((chosen, text)) = bytes.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let format = &FORMATS[usize::from(*chosen) % FORMATS.len()];
    let size = 1 + text.len() % 17;
    let pieces: Vec<char> = text.chars().collect();
    for complete in [true, false] {
        check_parts(format, [text.to_owned()], complete);
        check_parts(format, pieces.chunks(size).map(|piece| piece.iter().collect()), complete);
    }
}

/// Calls come in order, and arguments belong to a call that has begun.
fn check_parts(format: &AnswerFormat, pieces: impl IntoIterator<Item = String>, complete: bool) {
    let mut parser = AnswerParser::new(format);
    let mut parts = Vec::new();
    for piece in pieces {
        parts.extend(parser.push(&piece));
    }
    parts.extend(parser.finish(complete));
    let mut calls = 0;
    for part in &parts {
        match part {
            AnswerPart::Call { index, .. } => {
                assert_eq!(*index, calls, "calls are out of order");
                calls += 1;
            }
            AnswerPart::Arguments { index, .. } => {
                assert!(*index < calls, "arguments come before their call")
            }
            AnswerPart::Reasoning(text) | AnswerPart::Text(text) => {
                assert!(!text.is_empty(), "a part has no text");
            }
        }
    }
    assert_eq!(parser.calls(), calls, "a call is not counted");
}

/// The format of each template in `tests/formats`.
fn formats() -> Vec<AnswerFormat> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats");
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).ok()?;
        let source = text.strip_prefix("=== template\n")?.split("\n=== ").next()?.to_owned();
        Some(rendered(&ChatTemplate::new(&source, "", "").ok()?)?.format)
    };
    let formats: Vec<AnswerFormat> = paths.iter().filter_map(read).collect();
    assert_eq!(formats.len(), paths.len(), "a template of tests/formats cannot be read");
    assert!(!formats.is_empty(), "tests/formats is empty");
    formats
}

/// A question with a tool, rendered.
fn rendered(template: &ChatTemplate) -> Option<Rendered> {
    let parameters = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    let function = json!({ "name": "get_weather", "description": "", "parameters": parameters });
    let conversation = Conversation {
        messages: &[json!({ "role": "user", "content": "What is the weather?" })],
        tools: &[json!({ "type": "function", "function": function })],
        signatures: &Map::new(),
        variables: &Map::new(),
        calling: Calling::Possible { several: true },
    };
    template.render(&conversation).ok()
}

/// The template of a model file.
pub fn chat_template(bytes: &[u8]) {
    let Ok(source) = std::str::from_utf8(bytes) else { return };
    let Ok(template) = ChatTemplate::new(source, "<s>", "</s>") else { return };
    if let Some(rendered) = rendered(&template) {
        check_parts(&rendered.format, ["{\"name\": \"get_weather\"}".to_owned()], true);
    }
}

/// A JSON schema: what its grammar allows follows it.
pub fn schema(bytes: &[u8]) {
    let Ok(schema) = serde_json::from_slice::<Value>(bytes) else { return };
    let seed = bytes.iter().fold(bytes.len() as u64, |seed, byte| seed.rotate_left(5) ^ u64::from(*byte));
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK);
        let checked = thread.spawn_scoped(scope, || check_schema(&schema, seed)).map(|thread| thread.join());
        assert!(matches!(checked, Ok(Ok(()))), "a schema was not read");
    });
}

fn check_schema(schema: &Value, seed: u64) {
    static BYTES: LazyLock<Arc<Vocabulary>> = LazyLock::new(vocabulary);
    let Ok(enforceable) = Enforceable::read(schema) else { return };
    let is_enforced = enforceable.checked.is_empty();
    let Ok(grammar) = BYTES.start(GrammarText::of_schema(enforceable)) else { return };
    let Ok(validator) = Validator::of(schema) else { return };
    let Some(text) = written(grammar, &mut fastrand::Rng::with_seed(seed)) else { return };
    let is_out_of_range = |error: serde_json::Error| error.to_string().contains("out of range");
    // A number without bounds can be larger than what JSON libraries read.
    if !is_enforced || serde_json::from_str::<Value>(&text).is_err_and(is_out_of_range) {
        return;
    }
    let mut collector = Collector::default();
    collector.push(Delta::text(text.as_str()));
    collector.push(Delta::Finish { choice: 0, reason: FinishReason::Stop });
    if let Some(generation) = collector.finish("model") {
        let violation = AnswerCheck::Content(Arc::new(validator)).violation(&generation);
        assert_eq!(violation, None, "the grammar allows {text} for {schema}");
    }
}

/// A model that writes single bytes.
fn vocabulary() -> Arc<Vocabulary> {
    let all: Vec<[u8; 1]> = (0..=255).map(|byte| [byte]).collect();
    let tokens = all.iter().map(|byte| Spelling::Text(byte)).chain([Spelling::Control(b"<end>")]);
    let made = Vocabulary::new(tokens, vec![END.unsigned_abs()]);
    Arc::new(made.unwrap_or_else(|error| panic!("no vocabulary: {error}")))
}

/// Writes what a grammar allows, and prefers to end. `None` if it does not end, or if it is over a limit.
fn written(mut grammar: Grammar, random: &mut fastrand::Rng) -> Option<String> {
    let mut text = Vec::new();
    for _ in 0..MAX_TOKENS {
        let mut candidates: Vec<TokenCandidate> =
            (0..=END).map(|token| TokenCandidate { token, score: 0.0 }).collect();
        grammar.forbid(&mut candidates).ok()?;
        let allowed: Vec<i32> = candidates
            .iter()
            .filter(|candidate| candidate.score == 0.0)
            .map(|candidate| candidate.token)
            .collect();
        let ends = [END, i32::from(b'"'), i32::from(b'}'), i32::from(b']')];
        let ending = allowed.iter().copied().find(|token| ends.contains(token));
        let token = match ending {
            Some(token) if random.bool() => token,
            _ => *allowed.get(random.usize(..allowed.len().max(1)))?,
        };
        let Ok(byte) = u8::try_from(token) else { break };
        grammar.accept(token).ok()?;
        text.push(byte);
        if grammar.is_complete() {
            break;
        }
    }
    let is_whole = grammar.is_complete() || grammar.allows(END) == Ok(true);
    is_whole.then(|| String::from_utf8(text).ok()).flatten()
}

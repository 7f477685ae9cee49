//! Draft models: answers are the same with them, however good they are, and without them if they cannot be used.

use std::path::Path;

use hob_core::{Engine, GenerateRequest, Generation, JsonSchema, ResponseFormat, Sampling, Temperature};
use hob_llama::{DraftOptions, DraftUse, LlamaEngine, LlamaOptions};
use hob_testkit::CapturedLog;
use hob_testkit::gguf::{MetadataValue, copy_with_metadata};
use serde_json::json;
use tempfile::TempDir;

use super::{MODEL, ask, options, real_model_file, real_models_dir};

/// Questions with answers of different lengths.
const QUESTIONS: [&str; 2] =
    ["What is the capital of France? Answer in one sentence.", "Tell me a story about a fox."];

fn engine(dir: &TempDir, draft: Option<(&str, DraftUse)>) -> LlamaEngine {
    let draft = draft.map(|(model, when)| DraftOptions { model: model.to_owned(), when });
    LlamaEngine::new(LlamaOptions { parallel: Some(4), draft, ..options(dir) })
}

/// A directory with the model, and with its draft model: the same one, changed like this.
fn with_draft(change: impl FnOnce(&Path)) -> TempDir {
    let dir = TempDir::new().expect("a directory");
    // A draft model is not larger than its target.
    let note = "x".repeat(4096);
    copy_with_metadata(
        &real_model_file(),
        &dir.path().join("model.gguf"),
        &[("test.note", MetadataValue::Text(&note))],
    )
    .expect("a copy");
    change(&dir.path().join("draft.gguf"));
    dir
}

fn drawn(question: &str, seed: i64) -> GenerateRequest {
    GenerateRequest {
        temperature: Some(Temperature::new(0.7).expect("allowed")),
        sampling: Sampling { seed: Some(seed), ..Sampling::default() },
        ..ask(question, 20)
    }
}

/// What a caller sees of an answer.
fn told(generation: Generation) -> (String, Option<u64>) {
    (generation.answer.content, generation.usage.map(|usage| usage.completion_tokens))
}

/// Asks both engines the same.
async fn expect_same_answers(drafting: &LlamaEngine, plain: &LlamaEngine) {
    for question in QUESTIONS {
        // The second time, the prompt is in the memory, beside guesses.
        for request in [ask(question, 20), drawn(question, 7)] {
            let expected = told(plain.generate(&request).await.expect("an answer"));
            assert_eq!(told(drafting.generate(&request).await.expect("an answer")), expected);
        }
    }
    // Answers at the same time are computed in other steps, in which the last digits differ, so they are not always the same.
    let capitals = [("France", "Paris"), ("Italy", "Rome"), ("Germany", "Berlin"), ("Spain", "Madrid")];
    let requests = capitals
        .map(|(country, _)| ask(&format!("What is the capital of {country}? Answer in one sentence."), 24));
    let answers = requests.iter().map(|request| drafting.generate(request));
    for (answer, (_, city)) in futures::future::join_all(answers).await.into_iter().zip(capitals) {
        let (text, _) = told(answer.expect("an answer"));
        assert!(text.contains(city), "{text}");
    }
}

#[tokio::test]
async fn a_model_that_guesses_for_itself_is_nearly_always_right_and_changes_no_answer() {
    let dir = real_models_dir();
    std::os::unix::fs::symlink(real_model_file(), dir.path().join("draft.gguf")).expect("a link");
    let drafting = engine(&dir, Some(("draft", DraftUse::Always)));
    let plain = engine(&dir, None);
    let expected = told(plain.generate(&ask(QUESTIONS[1], 80)).await.expect("an answer"));
    assert_eq!(told(drafting.generate(&ask(QUESTIONS[1], 80)).await.expect("an answer")), expected);
    let (guessed, right) = drafting.drafted_tokens();
    assert!(guessed > 40 && right * 100 >= guessed * 95, "{right} of {guessed}");
    expect_same_answers(&drafting, &plain).await;
    assert_eq!(plain.drafted_tokens(), (0, 0));
}

#[tokio::test]
async fn wrong_guesses_change_no_answer() {
    // It reads its positions in another way, and so writes something else.
    let base = [("llama.rope.freq_base", MetadataValue::Float(20_000.0))];
    let dir = with_draft(|draft| copy_with_metadata(&real_model_file(), draft, &base).expect("a copy"));
    let drafting = engine(&dir, Some(("draft", DraftUse::Always)));
    expect_same_answers(&drafting, &engine(&dir, None)).await;
    let (guessed, right) = drafting.drafted_tokens();
    assert!(right > 0 && right < guessed, "{right} of {guessed}");
}

#[tokio::test]
async fn guesses_follow_a_grammar_and_a_stop_string_too() {
    let dir = real_models_dir();
    std::os::unix::fs::symlink(real_model_file(), dir.path().join("draft.gguf")).expect("a link");
    let (drafting, plain) = (engine(&dir, Some(("draft", DraftUse::Always))), engine(&dir, None));
    let schema = json!({
        "type": "object", "additionalProperties": false, "required": ["city", "people"],
        "properties": {"city": {"type": "string", "maxLength": 20}, "people": {"type": "integer"}},
    });
    let formatted = GenerateRequest {
        response_format: ResponseFormat::JsonSchema(JsonSchema {
            name: "city".to_owned(),
            description: None,
            schema,
            strict: Some(true),
        }),
        ..ask("Name the capital of France and the number of its people.", 60)
    };
    let stopped = GenerateRequest {
        sampling: Sampling { stop: vec![" of".to_owned()], ..Sampling::default() },
        ..ask("What is the capital of France? Answer in one sentence.", 40)
    };
    for request in [formatted, stopped] {
        let expected = told(plain.generate(&request).await.expect("an answer"));
        assert_eq!(told(drafting.generate(&request).await.expect("an answer")), expected);
    }
    assert!(drafting.drafted_tokens().1 > 0);
}

#[tokio::test]
async fn a_draft_model_with_another_vocabulary_is_refused_with_a_warning() {
    let log = CapturedLog::of_process();
    let dir = with_draft(|draft| {
        let mut file = std::fs::read(real_model_file()).expect("the model");
        // One token has another text.
        let token = [&8_u64.to_le_bytes()[..], "ĠFrance".as_bytes()].concat();
        let at = file.windows(token.len()).position(|window| window == token).expect("the token");
        file[at + token.len() - 1] = b'f';
        std::fs::write(draft, file).expect("written");
    });
    let drafting = engine(&dir, Some(("draft", DraftUse::Always)));
    let expected = told(engine(&dir, None).generate(&ask(QUESTIONS[0], 20)).await.expect("an answer"));
    for _ in 0..2 {
        assert_eq!(told(drafting.generate(&ask(QUESTIONS[0], 20)).await.expect("an answer")), expected);
        drafting.unload(MODEL).await.expect("unloaded");
    }
    assert_eq!(drafting.drafted_tokens(), (0, 0));
    let lines = log.lines("\"ĠFrance\" and \"ĠFrancf\"");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("Choose a draft model of the same family"), "{lines:?}");
}

#[tokio::test]
async fn a_draft_model_that_is_not_there_is_named_with_the_command_that_gets_it() {
    let log = CapturedLog::of_process();
    let dir = real_models_dir();
    let drafting = engine(&dir, Some(("no-such-draft", DraftUse::Faster)));
    for _ in 0..2 {
        drafting.generate(&ask(QUESTIONS[0], 5)).await.expect("an answer");
        drafting.unload(MODEL).await.expect("unloaded");
    }
    let lines = log.lines("run 'hob model pull no-such-draft'");
    assert_eq!(lines.len(), 1, "{lines:?}");
}

#[tokio::test]
async fn the_memory_of_a_draft_model_counts_and_a_model_without_room_for_it_answers_alone() {
    let dir = real_models_dir();
    std::os::unix::fs::symlink(real_model_file(), dir.path().join("draft.gguf")).expect("a link");
    let size = async |engine: &LlamaEngine| {
        engine.generate(&ask(QUESTIONS[0], 5)).await.expect("an answer");
        engine.running_models().await.expect("a list")[0].size.expect("a size")
    };
    let alone = size(&engine(&dir, None)).await;
    let drafting = engine(&dir, Some(("draft", DraftUse::Always)));
    let both = size(&drafting).await;
    assert!(both > alone * 3 / 2, "{both} bytes, {alone} alone");
    // The draft model is unloaded with its target, and is not a model of its own.
    assert_eq!(drafting.loaded_models(), [MODEL]);
    drafting.unload(MODEL).await.expect("unloaded");
    assert!(drafting.running_models().await.expect("a list").is_empty());

    let draft = DraftOptions { model: "draft".to_owned(), when: DraftUse::Always };
    let budget = alone + alone / 2;
    let tight =
        LlamaOptions { parallel: Some(4), draft: Some(draft), memory_budget: budget, ..options(&dir) };
    let tight = LlamaEngine::new(tight);
    assert!(size(&tight).await < both);
    assert_eq!(tight.drafted_tokens(), (0, 0));
}

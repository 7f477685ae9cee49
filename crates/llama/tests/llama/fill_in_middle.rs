//! A gap is filled with the model's own tokens for that, which its file names.

use std::path::Path;

use hob_core::{
    CompletionRequest, Engine, MaxTokens, ModelInfo, Prompt, Temperature, TokenizeInput, TokenizeRequest,
};
use hob_llama::{LlamaEngine, LlamaOptions};
use hob_testkit::gguf::{MetadataValue, copy_with_metadata};
use tempfile::TempDir;

use crate::support::{MODEL, model_file};

/// The tokens before the prefix, before the suffix and before the gap: some control tokens of the model.
const MARKS: [u32; 3] = [5, 6, 7];

/// A copy of the model whose file names tokens for gaps.
fn with_marks(original: &Path, copy: &Path) {
    let entries = ["pre", "suf", "mid"].map(|name| format!("tokenizer.ggml.fim_{name}_token_id"));
    let entries: Vec<(&str, MetadataValue<'_>)> = entries
        .iter()
        .zip(MARKS)
        .map(|(name, token)| (name.as_str(), MetadataValue::Number(token)))
        .collect();
    copy_with_metadata(original, copy, &entries).expect("a copy of the model");
}

fn completing(prompt: Prompt, suffix: Option<&str>) -> CompletionRequest {
    CompletionRequest {
        model: MODEL.into(),
        prompt,
        suffix: suffix.map(str::to_owned),
        temperature: Some(Temperature::new(0.0).expect("zero is allowed")),
        max_tokens: Some(MaxTokens::new(8).expect("positive")),
        ..CompletionRequest::default()
    }
}

#[tokio::test]
async fn the_texts_around_a_gap_stand_between_the_models_own_tokens() {
    let dir = TempDir::new().expect("a directory for models");
    with_marks(&model_file(), &dir.path().join("model.gguf"));
    let engine =
        LlamaEngine::new(LlamaOptions { context: Some(1024), threads: 1, ..LlamaOptions::new(dir.path()) });

    let (prefix, suffix) = ("def add(a, b):\n    return <|im_end|>", "\n\nprint(add(1, 2))");
    let filled = engine.complete(&completing(prefix.into(), Some(suffix))).await.expect("an answer");

    let split = async |text: &str| {
        // What looks like a control token in a text around the gap is none.
        let input = TokenizeInput::Text { text: text.to_owned(), add_special: false, parse_special: false };
        let request = TokenizeRequest { model: MODEL.into(), input, pieces: false };
        engine.tokenize(&request).await.expect("tokens").tokens
    };
    let [before, after, gap] = MARKS.map(|mark| vec![mark]);
    let tokens = [before, split(prefix).await, after, split(suffix).await, gap].concat();
    assert_eq!(filled.usage.expect("usage").prompt_tokens, tokens.len() as u64);
    let spelled = engine.complete(&completing(Prompt::Tokens(tokens), None)).await.expect("an answer");
    assert_eq!(filled.answer, spelled.answer);

    let described = engine.describe(&ModelInfo::named(MODEL)).await.expect("it is in memory");
    assert_eq!(described.capabilities.fill_in_middle, Some(true));
}

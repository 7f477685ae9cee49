//! Texts that are continued as they are, their probabilities, and their tokens.

use std::num::NonZeroU32;

use futures::StreamExt;
use hob_core::{
    Answer, CompletionRequest, Delta, DetokenizeRequest, Engine, EngineError, FinishReason, MaxTokens,
    Prompt, Sampling, Temperature, TokenizeInput, TokenizeRequest,
};
use serde_json::Value;

use super::{MODEL, answer, ask, engine, real_engine, split};

fn text(prompt: &str, max_tokens: i64) -> CompletionRequest {
    CompletionRequest {
        model: MODEL.into(),
        prompt: prompt.into(),
        temperature: Some(Temperature::new(0.0).expect("zero is allowed")),
        max_tokens: Some(MaxTokens::new(max_tokens).expect("positive")),
        ..CompletionRequest::default()
    }
}

#[tokio::test]
async fn a_text_is_continued_as_it_stands_from_text_and_from_tokens() {
    let engine = real_engine().await;
    let whole = engine.complete(&text("1, 2, 3, 4,", 6)).await.expect("an answer");
    assert!(whole.answer.content.starts_with(" 5, 6"), "got: {}", whole.answer.content);
    assert_eq!(whole.answer.finish_reason, FinishReason::Length);
    let usage = whole.usage.expect("usage");

    let input = TokenizeInput::Text { text: "1, 2, 3, 4,".into(), add_special: true, parse_special: true };
    let tokens = split(input).await;
    assert_eq!(usage.prompt_tokens, tokens.len() as u64, "no template is around it");
    let from_tokens = CompletionRequest { prompt: Prompt::Tokens(tokens), ..text("", 6) };
    let again = engine.complete(&from_tokens).await.expect("an answer");
    assert_eq!(again.answer, whole.answer);

    let mut stream = engine.stream_completion(&text("1, 2, 3, 4,", 6)).await.expect("a stream").deltas;
    let mut streamed = String::new();
    while let Some(delta) = stream.next().await {
        if let Delta::Text(piece) = delta.expect("a piece") {
            streamed.push_str(&piece.text);
        }
    }
    assert_eq!(streamed, whole.answer.content);
}

#[tokio::test]
async fn a_continued_text_has_probabilities_and_keeps_what_looks_like_a_thought() {
    let mut request = text("1, 2, 3, 4,", 2);
    request.sampling = Sampling { logprobs: true, top_logprobs: Some(2), ..Sampling::default() };
    let whole = engine().await.complete(&request).await.expect("an answer");
    let logprobs = whole.answer.logprobs.expect("probabilities");
    let tokens = logprobs["content"].as_array().expect("tokens");
    assert_eq!((tokens.len(), tokens[0]["top_logprobs"].as_array().map(Vec::len)), (2, Some(2)));
    assert_eq!(whole.answer.reasoning, None);
}

/// A text whose tokens are scored, with two alternatives each.
fn scored(prompt: &str, max_tokens: i64) -> CompletionRequest {
    let sampling = Sampling { logprobs: true, top_logprobs: Some(2), ..Sampling::default() };
    CompletionRequest { echo: true, sampling, ..text(prompt, max_tokens) }
}

fn scores(answer: &Answer) -> Vec<Value> {
    let logprobs = answer.logprobs.as_ref().expect("probabilities");
    logprobs["content"].as_array().expect("tokens").clone()
}

fn logprob(token: &Value) -> f64 {
    token["logprob"].as_f64().expect("a number")
}

#[tokio::test]
async fn a_repeated_prompt_has_the_probabilities_that_the_model_gives_its_tokens() {
    let engine = real_engine().await;
    let prompt = "1, 2, 3, 4,";
    let written = engine.complete(&scored(prompt, 3)).await.expect("an answer");
    assert!(written.answer.content.starts_with("1, 2, 3, 4, 5"), "got: {}", written.answer.content);
    let written_scores = scores(&written.answer);
    let spelled: String =
        written_scores.iter().map(|token| token["token"].as_str().expect("a text")).collect();
    assert_eq!(spelled, written.answer.content);
    assert_eq!(written_scores[0]["logprob"], Value::Null, "nothing precedes it");
    assert!(
        written_scores[1..].iter().all(|token| token["top_logprobs"].as_array().map(Vec::len) == Some(2))
    );

    // What the model wrote, read as a prompt, has the probabilities that it was written with.
    let read =
        CompletionRequest { prompt_only: true, max_tokens: None, ..scored(&written.answer.content, 1) };
    let read = engine.complete(&read).await.expect("an answer");
    assert_eq!(read.answer.content, written.answer.content);
    assert_eq!(read.answer.finish_reason, FinishReason::Length);
    assert_eq!(read.usage.map(|usage| usage.completion_tokens), Some(0));
    let read_scores = scores(&read.answer);
    assert_eq!(read_scores.len(), written_scores.len());
    for (read, written) in read_scores.iter().zip(&written_scores).skip(1) {
        assert_eq!(read["id"], written["id"]);
        let (one, other) = (logprob(read), logprob(written));
        assert!((one - other).abs() < 0.05, "{one} and {other} for {}", read["token"]);
    }
}

#[tokio::test]
async fn a_long_prompt_is_scored_completely_although_its_beginning_is_in_the_cache() {
    let engine = engine().await;
    let prompt = "The sun rises in the east and sets in the west. ".repeat(12);
    let plain = engine.complete(&text(&prompt, 2)).await.expect("an answer");
    let tokens = plain.usage.expect("usage").prompt_tokens;
    let mut request = CompletionRequest { prompt_only: true, max_tokens: None, ..scored(&prompt, 1) };
    request.sampling.n = NonZeroU32::new(2);
    let scored = engine.complete(&request).await.expect("an answer");
    assert_eq!(scored.usage.map(|usage| (usage.prompt_tokens, usage.cached_tokens)), Some((tokens, Some(0))));
    for answer in scored.answers() {
        let scores = scores(answer);
        assert_eq!((answer.content.as_str(), scores.len() as u64), (prompt.as_str(), tokens));
        // The text repeats itself, and the model notices.
        let sum = |tokens: &[Value]| tokens.iter().map(logprob).sum::<f64>();
        assert!(sum(&scores[scores.len() - 12..]) > sum(&scores[1..13]));
    }

    request.sampling = Sampling { top_logprobs: Some(20), n: NonZeroU32::new(4), ..request.sampling };
    let too_many = CompletionRequest { prompt: Prompt::Tokens(vec![5; 800]), ..request.clone() };
    let error = engine.complete(&too_many).await.expect_err("refused");
    assert!(
        matches!(&error, EngineError::Refused { param: Some(field), .. } if field == "logprobs"),
        "{error}"
    );

    request.sampling = Sampling { top_logprobs: Some(2), n: None, ..request.sampling };
    let input = TokenizeInput::Text { text: prompt.clone(), add_special: true, parse_special: true };
    let from_tokens = CompletionRequest { prompt: Prompt::Tokens(split(input).await), ..request };
    assert_eq!(engine.complete(&from_tokens).await.expect("an answer").answer.content, prompt);
}

#[tokio::test]
async fn a_model_without_tokens_for_gaps_refuses_the_suffix_by_name() {
    let request = CompletionRequest { suffix: Some("}".into()), ..text("{", 4) };
    let error = engine().await.complete(&request).await.expect_err("refused");
    assert!(matches!(&error, EngineError::Unsupported { field, .. } if field == "suffix"), "{error}");
    let request = CompletionRequest { prompt: Prompt::Tokens(vec![4_000_000]), ..text("", 4) };
    let error = engine().await.complete(&request).await.expect_err("refused");
    assert!(
        matches!(&error, EngineError::Refused { status: 400, param: Some(param), .. } if param == "prompt")
    );
}

#[tokio::test]
async fn a_text_becomes_tokens_and_text_again() {
    let engine = engine().await;
    let written = "Grüße, <|im_end|> world";
    let of = |parse_special| TokenizeInput::Text { text: written.into(), add_special: false, parse_special };
    let (parsed, words) = (split(of(true)).await, split(of(false)).await);
    assert!(parsed.len() < words.len(), "a control token is one token: {parsed:?} {words:?}");
    for tokens in [parsed, words] {
        let request = DetokenizeRequest { model: MODEL.into(), tokens };
        assert_eq!(engine.detokenize(&request).await.expect("text"), written);
    }
    let request = TokenizeRequest { model: MODEL.into(), input: of(true), pieces: true };
    let tokenized = engine.tokenize(&request).await.expect("tokens");
    assert_eq!(tokenized.pieces.map(|pieces| pieces.concat()), Some(written.as_bytes().to_vec()));
    assert_eq!(tokenized.context, Some(1024));

    let conversation = TokenizeInput::Conversation(Box::new(ask("hi", 4)));
    let counted = split(conversation).await.len() as u64;
    assert_eq!(answer(&ask("hi", 4)).await.usage.expect("usage").prompt_tokens, counted);
}

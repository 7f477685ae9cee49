use hob_core::{FinishReason, GenerateRequest, Sampling};
use hob_testkit::ScriptedEngine;
use serde_json::json;

use super::*;

/// An engine whose answers repeat the prompt in capitals, as many as are asked for. The later ones are likelier.
fn shouting() -> ScriptedEngine {
    ScriptedEngine::new(|request: &GenerateRequest| {
        let text = request.messages.first().map(|message| message.content.text().to_uppercase());
        let text = text.unwrap_or_default();
        let mut deltas = Vec::new();
        for choice in 0..request.answers() {
            let logprob = f64::from(choice) - 10.0;
            let tokens = json!({ "content": [{ "token": text, "logprob": logprob }] });
            let logprobs = request.sampling.logprobs.then(|| Box::new(tokens));
            deltas.push(Ok(Delta::Text(TextDelta { choice, text: format!("{text}{choice}"), logprobs })));
            deltas.push(Ok(Delta::Finish { choice, reason: FinishReason::Stop }));
        }
        let usage = Usage {
            prompt_tokens: 1,
            completion_tokens: 2,
            cached_tokens: Some(1),
            reasoning_tokens: None,
            load_time: None,
        };
        deltas.push(Ok(Delta::Done { usage: Some(usage) }));
        deltas
    })
}

fn shared(engine: ScriptedEngine) -> Arc<dyn Engine> {
    Arc::new(engine)
}

fn texts(prompts: &[&str]) -> TextRequest {
    TextRequest {
        prompts: prompts.iter().map(|text| Prompt::from(*text)).collect(),
        request: CompletionRequest { model: "m".into(), ..CompletionRequest::default() },
        best_of: None,
    }
}

fn contents(generation: &Generation) -> Vec<String> {
    generation.answers().map(|answer| answer.content.clone()).collect()
}

#[tokio::test]
async fn the_answers_to_several_texts_come_in_their_order() {
    let mut request = texts(&["a", "b"]);
    request.request.sampling.n = NonZeroU32::new(2);
    let generation = complete_texts(&shouting(), request).await.unwrap();
    assert_eq!(contents(&generation), ["A0", "A1", "B0", "B1"]);
    let usage = Usage {
        prompt_tokens: 2,
        completion_tokens: 4,
        cached_tokens: Some(2),
        reasoning_tokens: None,
        load_time: None,
    };
    assert_eq!(generation.usage, Some(usage));
}

#[tokio::test]
async fn a_stream_of_several_texts_numbers_their_answers_and_is_done_once() {
    let mut request = texts(&["a", "b"]);
    request.request.echo = true;
    let stream = stream_texts(&shared(shouting()), request).await.unwrap();
    let deltas: Vec<Delta> = stream.deltas.try_collect().await.unwrap();
    let mut written = [String::new(), String::new()];
    for delta in &deltas {
        if let Delta::Text(piece) = delta {
            written[piece.choice as usize].push_str(&piece.text);
        }
    }
    assert_eq!(written, ["aA0", "bB0"]);
    let usage = Usage {
        prompt_tokens: 2,
        completion_tokens: 4,
        cached_tokens: Some(2),
        reasoning_tokens: None,
        load_time: None,
    };
    let done: Vec<&Delta> = deltas.iter().filter(|delta| matches!(delta, Delta::Done { .. })).collect();
    assert_eq!(done, [&Delta::Done { usage: Some(usage) }]);
}

#[tokio::test]
async fn one_broken_text_breaks_the_stream_of_all() {
    let engine =
        ScriptedEngine::new(|request: &GenerateRequest| match request.messages[0].content.text().as_ref() {
            "good" => vec![
                Ok(Delta::text("fine")),
                Ok(Delta::Finish { choice: 0, reason: FinishReason::Stop }),
                Ok(Delta::Done { usage: None }),
            ],
            _ => vec![Ok(Delta::text("half"))],
        });
    let stream = stream_texts(&shared(engine), texts(&["good", "bad"])).await.unwrap();
    let deltas: Vec<_> = stream.deltas.collect().await;
    assert!(!deltas.iter().any(|delta| matches!(delta, Ok(Delta::Done { .. }))), "{deltas:?}");
}

#[tokio::test]
async fn the_likeliest_of_several_tries_is_the_answer() {
    let engine = shouting();
    let mut request = texts(&["a"]);
    request.best_of = NonZeroU32::new(3);
    request.request.sampling.n = NonZeroU32::new(2);
    let generation = complete_texts(&engine, request).await.unwrap();
    assert_eq!(contents(&generation), ["A2", "A1"]);
    assert!(generation.answers().all(|answer| answer.logprobs.is_none()), "they were not asked for");
    let asked = engine.completion_requests();
    assert_eq!(asked[0].sampling, Sampling { n: NonZeroU32::new(3), logprobs: true, ..Sampling::default() });
}

#[tokio::test]
async fn a_prompt_of_tokens_is_echoed_as_text() {
    let mut request = texts(&[]);
    request.prompts = vec![Prompt::Tokens(vec![104, 105])];
    request.request.echo = true;
    let generation = complete_texts(&shouting(), request).await.unwrap();
    assert_eq!(contents(&generation), ["hi0"]);
}

#[tokio::test]
async fn probabilities_of_an_echoed_prompt_are_left_to_the_engine() {
    let engine = shouting();
    let mut request = texts(&["a"]);
    request.request.echo = true;
    request.request.sampling.logprobs = true;
    complete_texts(&engine, request).await.unwrap();
    assert!(engine.completion_requests()[0].echo);
}

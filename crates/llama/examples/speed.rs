//! Measures the embedded engine on this machine: prompt and generation, one stream and eight.
//!
//! `cargo run --release -p hob-llama --example speed -- FILE.gguf [THREADS [tune]]`; with `tune`, first tunes the model.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use hob_core::{Delta, Engine, GenerateRequest, MaxTokens, Message, Role, Temperature};
use hob_llama::{LlamaEngine, LlamaOptions};
use hob_models::ModelFileEngine;
use hob_models::tuned::KeepTuned;
use serde_json::{Map, json};

struct Run {
    first: Duration,
    tokens: u64,
}

fn request(
    model: &str,
    question: String,
    tokens: i64,
) -> Result<GenerateRequest, Box<dyn Error + Send + Sync>> {
    Ok(GenerateRequest {
        model: model.to_owned(),
        messages: vec![Message::new(Role::User, question)],
        temperature: Some(Temperature::new(0.0)?),
        max_tokens: Some(MaxTokens::new(tokens)?),
        extra: Map::from_iter([("ignore_eos".to_owned(), json!(true))]),
        ..GenerateRequest::default()
    })
}

async fn run(engine: &LlamaEngine, request: &GenerateRequest) -> Result<Run, Box<dyn Error + Send + Sync>> {
    let started = Instant::now();
    let mut deltas = engine.stream(request).await?.deltas;
    let mut first = None;
    let mut tokens = 0;
    while let Some(delta) = deltas.next().await {
        match delta? {
            Delta::Text(_) => {
                first.get_or_insert_with(|| started.elapsed());
            }
            Delta::Done { usage } => tokens = usage.map_or(0, |usage| usage.completion_tokens),
            _ => {}
        }
    }
    Ok(Run { first: first.unwrap_or_default(), tokens })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("usage: speed FILE.gguf [THREADS [tune]]")?;
    let path = Path::new(&file);
    let model = path.file_stem().and_then(|stem| stem.to_str()).ok_or("not a file")?.to_owned();
    let mut options = LlamaOptions::new(path.parent().ok_or("not a file")?);
    if let Some(threads) = arguments.next() {
        options.threads = threads.parse()?;
    }
    println!("model {model}, threads {}", options.threads);
    let engine = Arc::new(LlamaEngine::new(options));
    if arguments.next().as_deref() == Some("tune") {
        println!("{:#?}", engine.tune(&model, KeepTuned::IfFaster).await?);
    }
    let loading = Instant::now();
    engine.prepare(&model).await?;
    println!("load                 {:>8.0} ms", loading.elapsed().as_secs_f64() * 1e3);

    let long = |seed: usize| format!("{seed} {}", "The quick brown fox jumps over the lazy dog. ".repeat(50));
    for round in 0..3 {
        let short = run(&engine, &request(&model, format!("Tell me story number {round}."), 1)?).await?;
        println!("first token, short   {:>8.1} ms", short.first.as_secs_f64() * 1e3);
        let prompt = request(&model, long(round), 1)?;
        let read = run(&engine, &prompt).await?;
        println!("first token, 530     {:>8.1} ms", read.first.as_secs_f64() * 1e3);

        let started = Instant::now();
        let one = run(&engine, &request(&model, format!("Tell me story number {round}."), 128)?).await?;
        println!(
            "1 stream             {:>8.1} tokens/s",
            one.tokens as f64 / started.elapsed().as_secs_f64()
        );

        let started = Instant::now();
        let running: Vec<_> = (0..8)
            .map(|stream| {
                let engine = Arc::clone(&engine);
                let model = model.clone();
                tokio::spawn(async move {
                    let request = request(&model, format!("Tell me story {stream} of round {round}."), 64)?;
                    run(&engine, &request).await
                })
            })
            .collect();
        let mut tokens = 0;
        for stream in running {
            tokens += stream.await??.tokens;
        }
        println!("8 streams            {:>8.1} tokens/s", tokens as f64 / started.elapsed().as_secs_f64());
    }
    Ok(())
}

//! Measures the choice of tokens: this engine's sampler, and llama.cpp's chain with the same settings, alone and for the streams of
//! a step.
//!
//! `cargo run --release -p hob-llama --example sampler`

use std::hint::black_box;
use std::time::Instant;

use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token::data::LlamaTokenData;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;

use crate::sampler::{Sampler, SamplingParams};
use crate::sampling_threads::SamplingThreads;

#[expect(dead_code, reason = "grammars and penalties are not measured here")]
#[path = "../src/sampler.rs"]
mod sampler;
#[path = "../src/sampling_threads.rs"]
mod sampling_threads;

/// The vocabulary for several streams: that of Llama 3.
const VOCABULARY: usize = 128_256;

/// As many threads as the engine uses at most.
const THREADS: usize = 8;

/// The settings that are measured: a name, the temperature, and `top_k`.
const SETTINGS: [(&str, f32, usize); 3] =
    [("greedy", 0.0, 40), ("the defaults", 0.8, 40), ("all tokens, top_p 0.95", 0.8, 0)];

/// The median time of a call in microseconds.
fn time(rounds: usize, mut call: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..rounds)
        .map(|_| {
            let started = Instant::now();
            call();
            started.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[rounds / 2]
}

/// Like the scores of a model: most are low, and a few stand out.
fn scores(vocabulary: usize, seed: u64) -> Vec<f32> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..vocabulary).map(|_| (0..6).map(|_| random.f32()).sum::<f32>() * 4.0).collect()
}

fn params(temperature: f32, top_k: usize) -> SamplingParams {
    SamplingParams { top_k, ..SamplingParams::new(temperature, 1) }
}

fn chain(temperature: f32, top_k: usize) -> LlamaSampler {
    if temperature == 0.0 {
        return LlamaSampler::greedy();
    }
    LlamaSampler::chain_simple([
        LlamaSampler::top_k(i32::try_from(top_k).unwrap_or(0)),
        LlamaSampler::top_p(0.95, 1),
        LlamaSampler::min_p(0.05, 1),
        LlamaSampler::temp(temperature),
        LlamaSampler::dist(1),
    ])
}

/// As llama.cpp's server does: the scores are copied into candidates, which the chain then changes.
fn choose_by_chain(chain: &mut LlamaSampler, candidates: &mut LlamaTokenDataArray, scores: &[f32]) {
    candidates.data.clear();
    let all = (0..).zip(scores).map(|(token, &score)| LlamaTokenData::new(LlamaToken(token), score, 0.0));
    candidates.data.extend(all);
    candidates.sorted = false;
    candidates.apply_sampler(chain);
    black_box(candidates.selected_token());
}

/// One stream with several vocabularies.
fn measure_vocabularies() {
    println!("one stream, time of a token");
    println!("{:<12} {:<24} {:>10} {:>12}", "vocabulary", "", "hob", "llama.cpp");
    for vocabulary in [49_152, 151_936, 262_144] {
        let scores = scores(vocabulary, 1);
        for (name, temperature, top_k) in SETTINGS {
            let mut ours = Sampler::new(params(temperature, top_k));
            let hob = time(300, || {
                black_box(ours.choose(black_box(&scores)));
            });
            let mut chain = chain(temperature, top_k);
            let mut candidates = LlamaTokenDataArray::new(Vec::with_capacity(scores.len()), false);
            let theirs = time(300, || choose_by_chain(&mut chain, &mut candidates, &scores));
            println!("{vocabulary:<12} {name:<24} {hob:>7.1} µs {theirs:>9.1} µs");
        }
    }
}

/// Several streams, each with its own sampler and its own row of scores, as in a step of the engine.
fn measure_streams() {
    // An answer that must not end, as in a benchmark.
    let no_end = SamplingParams { bias: vec![(128_001, f32::NEG_INFINITY)], ..params(0.0, 40) };
    let settings = SETTINGS.map(|(name, temperature, top_k)| (name, params(temperature, top_k)));
    let settings = settings.into_iter().chain([("greedy, ignore_eos", no_end)]);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = THREADS.min(cores);
    println!();
    println!("{VOCABULARY} tokens in the vocabulary, time of a token, one thread against {threads}");
    println!("{:<8} {:<24} {:>10} {:>12} {:>12}", "streams", "", "hob", "hob, threads", "llama.cpp");
    for (name, params) in settings {
        for streams in [1, 8, 32] {
            let rows: Vec<Vec<f32>> = (1..).take(streams).map(|seed| scores(VOCABULARY, seed)).collect();
            let mut samplers: Vec<Sampler> = rows.iter().map(|_| Sampler::new(params.clone())).collect();
            let mut step_with = |threads: usize| {
                let mut helpers = SamplingThreads::new(threads, 1 << 20);
                time(100, || {
                    let mut tasks: Vec<(&mut Sampler, &[f32])> = samplers
                        .iter_mut()
                        .zip(&rows)
                        .map(|(sampler, row)| (sampler, row.as_slice()))
                        .collect();
                    helpers.run(&mut tasks, VOCABULARY, |(sampler, row)| {
                        black_box(sampler.choose(black_box(*row)));
                    });
                })
            };
            let (alone, together) = (step_with(1), step_with(threads));
            let mut chains: Vec<LlamaSampler> =
                rows.iter().map(|_| chain(params.temperature, params.top_k)).collect();
            let mut candidates = LlamaTokenDataArray::new(Vec::with_capacity(VOCABULARY), false);
            let theirs = time(30, || {
                for (chain, row) in chains.iter_mut().zip(&rows) {
                    choose_by_chain(chain, &mut candidates, row);
                }
            });
            let [alone, together, theirs] = [alone, together, theirs].map(|step| step / streams as f64);
            println!("{streams:<8} {name:<24} {alone:>7.1} µs {together:>9.1} µs {theirs:>9.1} µs");
        }
    }
}

fn main() {
    measure_vocabularies();
    measure_streams();
}

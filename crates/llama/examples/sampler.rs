//! Measures the choice of a token: this engine's sampler, and llama.cpp's chain with the same settings.
//!
//! `cargo run --release -p hob-llama --example sampler`

use std::hint::black_box;
use std::time::Instant;

use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token::data::LlamaTokenData;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;

use crate::sampler::{Sampler, SamplingParams};

#[expect(dead_code, reason = "grammars and penalties are not measured here")]
#[path = "../src/sampler.rs"]
mod sampler;

const ROUNDS: usize = 300;

/// The median time of a call in microseconds.
fn time(mut call: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let started = Instant::now();
            call();
            started.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[ROUNDS / 2]
}

fn main() {
    println!("{:<12} {:<24} {:>10} {:>12}", "vocabulary", "", "hob", "llama.cpp");
    for vocabulary in [49_152, 151_936, 262_144] {
        // Like the scores of a model: most are low, and a few stand out.
        let mut random = fastrand::Rng::with_seed(1);
        let scores: Vec<f32> =
            (0..vocabulary).map(|_| (0..6).map(|_| random.f32()).sum::<f32>() * 4.0).collect();
        for (name, temperature, top_k) in
            [("greedy", 0.0, 40), ("the defaults", 0.8, 40), ("all tokens, top_p 0.95", 0.8, 0)]
        {
            let params = SamplingParams { top_k, ..SamplingParams::new(temperature, 1) };
            let mut ours = Sampler::new(params);
            let hob = time(|| {
                black_box(ours.choose(black_box(&scores)));
            });
            let mut chain = if temperature == 0.0 {
                LlamaSampler::greedy()
            } else {
                LlamaSampler::chain_simple([
                    LlamaSampler::top_k(i32::try_from(top_k).unwrap_or(0)),
                    LlamaSampler::top_p(0.95, 1),
                    LlamaSampler::min_p(0.05, 1),
                    LlamaSampler::temp(temperature),
                    LlamaSampler::dist(1),
                ])
            };
            // As llama.cpp's server does: the scores are copied into candidates, which the chain then changes.
            let mut candidates = LlamaTokenDataArray::new(Vec::with_capacity(scores.len()), false);
            let theirs = time(|| {
                candidates.data.clear();
                let all = (0..)
                    .zip(&scores)
                    .map(|(token, &score)| LlamaTokenData::new(LlamaToken(token), score, 0.0));
                candidates.data.extend(all);
                candidates.sorted = false;
                candidates.apply_sampler(&mut chain);
                black_box(candidates.selected_token());
            });
            println!("{vocabulary:<12} {name:<24} {hob:>7.1} µs {theirs:>9.1} µs");
        }
    }
}

//! Whether requests leave anything behind in the embedded engine. A program of its own, because it measures the memory of its
//! process.
#![expect(clippy::expect_used, reason = "a test that cannot set itself up should fail loudly")]
#![cfg(target_os = "linux")]

#[path = "llama/several_models/fixtures.rs"]
mod fixtures;
#[path = "llama/support.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod support;

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use hob_core::{Delta, Engine};
use hob_llama::LlamaEngine;

use fixtures::{ask, endless, engine_for, models_dir, names};

/// Kilobytes of memory of this process, except pages of files, which the system takes and gives as it likes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("this process");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("its memory");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// The memory with one model. Another one may still be freed by its thread, so this waits until the memory is below a limit; after
/// a minute it returns what there is.
async fn resident_with_one_model(engine: &LlamaEngine, limit: u64) -> u64 {
    // There is memory for one, so the other one has left.
    engine.generate(&ask("m0", "Hello", 1)).await.expect("an answer");
    let began = std::time::Instant::now();
    while resident() >= limit && began.elapsed() < Duration::from_secs(60) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    resident()
}

/// One of the mixed requests.
async fn request(engine: Arc<LlamaEngine>, number: usize) {
    // The models change in blocks of different lengths.
    let model = if (number / 7 + number / 11).is_multiple_of(2) { "m0" } else { "m1" };
    let question = ask(model, &format!("Tell me about the number {number}."), 8);
    match number % 4 {
        0 => drop(engine.generate(&question).await.expect("an answer")),
        1 => {
            let mut deltas = engine.stream(&question).await.expect("a stream").deltas;
            let mut ended = false;
            while let Some(delta) = deltas.next().await {
                ended = matches!(delta.expect("no error"), Delta::Done { .. });
            }
            assert!(ended);
        }
        2 => {
            let mut deltas = engine.stream(&endless(model)).await.expect("a stream").deltas;
            assert!(deltas.next().await.expect("a piece").is_ok());
        }
        _ => {
            let wait = Duration::from_millis(number as u64 % 50);
            let _ = tokio::time::timeout(wait, engine.generate(&endless(model))).await;
        }
    }
}

/// Mixed requests to two models with memory for one: whole answers, streams, and callers that leave in the middle.
async fn soak(requests: usize) {
    let dir = models_dir(&names(2));
    let engine = engine_for(&dir, 1).await;
    let one = |number: usize| request(Arc::clone(&engine), number);
    let part = requests / 5;
    stream::iter(0..part).for_each_concurrent(6, one).await;
    let before = resident_with_one_model(&engine, u64::MAX).await;
    stream::iter(part..requests).for_each_concurrent(6, one).await;
    let limit = before + 60_000;
    let after = resident_with_one_model(&engine, limit).await;
    assert!(after < limit, "{before} kB grew to {after} kB");
    assert!(engine.loads() < requests as u64 / 2, "{} loads", engine.loads());
    // All slots are free: as many requests as there are slots are answered together, and no model is in use.
    for model in ["m0", "m1"] {
        let endless = endless(model);
        let together = (0..4).map(|_| engine.stream(&endless));
        let mut streams: Vec<_> = futures::future::join_all(together).await;
        for stream in &mut streams {
            let deltas = &mut stream.as_mut().expect("a stream").deltas;
            assert!(deltas.next().await.expect("a piece").is_ok());
        }
        drop(streams);
        engine.unload(model).await.expect("not in use");
    }
    assert_eq!(engine.loaded_models(), [""; 0]);
}

#[tokio::test]
async fn mixed_requests_leave_nothing_behind() {
    soak(40).await;
}

#[tokio::test]
#[ignore = "takes minutes: cargo nextest run --run-ignored only -E 'test(a_thousand_mixed_requests)'"]
async fn a_thousand_mixed_requests_leave_nothing_behind() {
    soak(1000).await;
}

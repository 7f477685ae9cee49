//! Tuning a model for this machine.

use std::time::Duration;

use hob_core::Engine;
use hob_llama::LlamaEngine;
use hob_models::ModelFileEngine;
use hob_models::tuned::KeepTuned;

use super::{MODEL, ask, models_dir, options};

#[tokio::test]
async fn a_dropped_tuning_leaves_nothing_behind() {
    let dir = models_dir();
    let engine = LlamaEngine::new(options(&dir));
    let work = dir.path().join("tuned/model.gguf.part");
    tokio::select! {
        report = engine.tune(MODEL, KeepTuned::Always) => panic!("it takes longer than that: {report:?}"),
        () = until("it is written", || work.join("model.gguf").exists()) => {}
    }
    assert!(!work.exists(), "gone at once, although llama.cpp still writes");
    assert!(!dir.path().join("tuned/model.gguf").exists());
}

/// Waits until a condition about files holds.
async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..2_400 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("never happened: {what}");
}

#[tokio::test]
async fn tuning_measures_speed_and_quality() {
    let dir = models_dir();
    let engine = LlamaEngine::new(options(&dir));
    let report = engine.tune(MODEL, KeepTuned::Always).await.expect("a report");
    assert_eq!((report.original.quantization.as_str(), report.tuned.quantization.as_str()), ("Q4_1", "Q4_0"));
    assert!(report.original.written_tokens_per_second > 0.0 && report.tuned.prompt_tokens_per_second > 0.0);
    // Four bits without an offset are a little worse, not another model.
    assert!((0.0..0.5).contains(&report.cost.divergence), "{:?}", report.cost);
    assert!(report.cost.perplexity_after < report.cost.perplexity_before * 1.3, "{:?}", report.cost);
    let tuned = dir.path().join("tuned/model.gguf");
    assert_eq!(report.kept.as_ref(), Some(&tuned));
    assert!(tuned.exists());
    assert_eq!(engine.list_models().await.expect("a list").len(), 1);
    engine.generate(&ask("Hello", 1)).await.expect("an answer from the other form");
}

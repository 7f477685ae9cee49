//! The estimates compared with what llama.cpp allocates, with a real model.

use std::path::Path;

use hob_core::ComputeDevice;
use hob_models::{ContextPlan, KvPrecision, ModelDirectory, StoredModel};
use hob_testkit::gguf::{MetadataValue, copy_with_metadata};
use tempfile::TempDir;

use super::*;
use crate::cards::Card;
use crate::loading::LoadPlan;
use crate::log;
use crate::offload::{LayerSizes, Offload};
use crate::options::{GpuLayers, LlamaOptions};

fn close(estimate: u64, real: u64) -> bool {
    estimate.abs_diff(real) * 10 <= real
}

fn close_to_range(estimate: u64, least: u64, most: u64) -> bool {
    (least..=most).contains(&estimate) || close(estimate, least) || close(estimate, most)
}

/// The model of the tests with other metadata.
fn stored(entries: &[(&str, MetadataValue<'_>)]) -> (TempDir, StoredModel) {
    let file = std::env::var("HOB_TEST_MODEL").expect("HOB_TEST_MODEL; run this test with './dev test'");
    let dir = TempDir::new().expect("a directory");
    copy_with_metadata(Path::new(&file), &dir.path().join("model.gguf"), entries).expect("a copy");
    let stored = ModelDirectory::new(dir.path()).find("model").expect("a list").expect("the model");
    (dir, stored)
}

/// A card with room for everything.
fn card() -> Card {
    let device = ComputeDevice {
        name: "CUDA0".to_owned(),
        description: "a card".to_owned(),
        backend: "CUDA".to_owned(),
        memory_total: 80 << 30,
        memory_free: 80 << 30,
    };
    Card { index: 0, device }
}

fn on_processor() -> LlamaOptions {
    LlamaOptions {
        context: Some(4096),
        parallel: Some(2),
        threads: 1,
        gpu_layers: GpuLayers::Count(0),
        ..LlamaOptions::new("")
    }
}

#[test]
fn a_model_that_embeds_is_planned_with_the_context_that_it_gets() {
    let (_dir, stored) = stored(&[("llama.pooling_type", MetadataValue::Number(1))]);
    // The cache of vectors has 16 bits in any case.
    let options = LlamaOptions { kv: KvPrecision::Q8, ..on_processor() };
    let loaded = LoadedModel::load_file(&stored, &stored.path, &options).expect("a model");
    let (context, said) = log::listen(|| loaded.embedding_context().map(drop));
    context.expect("a context");
    let real = said.buffers;
    let on_card = LlamaOptions { gpu_layers: GpuLayers::Auto, ..options };
    let plan = LoadPlan::on(vec![card()], &stored, &on_card).expect("a plan");
    let estimate = loaded.memory(loaded.first_cells()).expect("an estimate");
    for estimate in [plan.footprint.at_start, estimate] {
        let what = format!("{estimate:?}, {real:?}");
        assert_eq!(estimate.kv_cache.abs_diff(real.kv_cache) >> 20, 0, "{what}");
        assert!(estimate.compute * 10 >= real.compute * 9, "{what}");
    }
    assert!(plan.offload.is_whole);
    let parts = plan.at_start();
    assert!(
        parts.on_cards() >= plan.footprint.at_start.kv_cache + plan.footprint.at_start.compute,
        "{parts:?}"
    );
}

#[test]
fn the_context_for_vectors_beside_answers_is_counted_where_it_is() {
    let (_dir, stored) = stored(&[]);
    let mut loaded = LoadedModel::load_file(&stored, &stored.path, &on_processor()).expect("a model");
    let second = loaded.second_context().expect("an estimate");
    let second = second.kv_cache + second.compute;
    // What the context adds to the main memory and to the cards.
    let added = |loaded: &LoadedModel| {
        let used = |embeds_too| {
            loaded.embeds_too.store(embeds_too, Ordering::Relaxed);
            let used = loaded.used_memory(loaded.first_cells()).expect("its memory");
            (used.main, used.on_cards())
        };
        let (before, after) = (used(false), used(true));
        (after.0 - before.0, after.1 - before.1)
    };
    assert_eq!(added(&loaded), (second, 0));
    let sizes = LayerSizes { layers: 30, layer: 1 << 20, output: 1 << 20, buffers: 1 << 20 };
    loaded.offload = Offload::plan(&sizes, &[card()], GpuLayers::Auto);
    assert_eq!(added(&loaded), (0, second));
}

#[test]
fn the_estimates_are_what_llama_cpp_allocates() {
    let (_dir, stored) = stored(&[]);
    let file = stored.path.as_path();
    for (kv, slots, cells) in [
        (KvPrecision::F16, 1, 1024),
        (KvPrecision::F16, 64, 1024),
        (KvPrecision::F16, 8, 8192),
        (KvPrecision::Q8, 8, 4096),
        (KvPrecision::F16, 64, 32_768),
    ] {
        let options = LlamaOptions {
            kv,
            parallel: Some(slots),
            threads: 1,
            gpu_layers: GpuLayers::Count(0),
            ..LlamaOptions::new("")
        };
        let (loaded, weights) = log::listen(|| LoadedModel::load_file(&stored, file, &options));
        let loaded = loaded.expect("a model");
        let (context, said) = log::listen(|| loaded.writing_context(cells).map(drop));
        context.expect("a context");
        let estimate = loaded.memory(cells).expect("an estimate");
        let real = said.buffers;
        let what = format!("{kv:?}, {slots} slots, {cells} cells: {estimate:?}, {real:?}");
        assert_eq!(estimate.kv_cache.abs_diff(real.kv_cache) >> 20, 0, "{what}");
        assert!(close(estimate.compute, real.compute), "{what}");
        // Which weights are copied depends on the processor: all of them, some, or none. A copied one is a part of the file too.
        let weights = weights.buffers;
        let least = weights.copied_weights.max(weights.mapped_weights);
        let most = weights.copied_weights + weights.mapped_weights;
        assert!(close_to_range(estimate.weights, least, most), "{weights:?}, {what}");
        // The estimate from the header alone, which `hob model info` shows.
        let plan =
            ContextPlan::new(&stored.needs().expect("a header"), stored.trained(), &options.context_wish());
        let shown = stored.needs().expect("a header").estimate(plan.shape(cells.into()));
        let (shown, buffers) = (shown.total() - shown.library, real.kv_cache + real.compute);
        assert!(close_to_range(shown, least + buffers, most + buffers), "{shown}, {weights:?}, {what}");
        // The second context, for vectors.
        let (context, said) = log::listen(|| loaded.embedding_context().map(drop));
        context.expect("a context");
        let second = loaded.second_context().expect("an estimate");
        let what = format!("{second:?}, {:?}", said.buffers);
        assert_eq!(second.kv_cache.abs_diff(said.buffers.kv_cache) >> 20, 0, "{what}");
        assert!(second.compute * 10 >= said.buffers.compute * 9, "{what}");
    }
}

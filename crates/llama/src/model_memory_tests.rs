//! The estimates compared with what llama.cpp allocates, with a real model.

use hob_models::{ContextPlan, KvPrecision};
use hob_testkit::gguf::MetadataValue;

use super::*;
use crate::fixtures::{GB, card, changed_model, on_processor, stored_model};
use crate::gpu_layers::{LayerSizes, Offload};
use crate::loading::LoadPlan;
use crate::log;
use crate::options::{GpuLayers, LlamaOptions};

fn close(estimate: u64, real: u64) -> bool {
    estimate.abs_diff(real) * 10 <= real
}

fn close_to_range(estimate: u64, least: u64, most: u64) -> bool {
    (least..=most).contains(&estimate) || close(estimate, least) || close(estimate, most)
}

#[test]
fn a_model_that_embeds_is_planned_with_the_context_that_it_gets() {
    let (_dir, stored) = changed_model(&[("llama.pooling_type", MetadataValue::Number(1))]);
    // The cache of vectors has 16 bits in any case.
    let options =
        LlamaOptions { context: Some(4096), parallel: Some(2), kv: KvPrecision::Q8, ..on_processor() };
    let loaded = LoadedModel::load_file(&stored, &stored.path, &options).expect("a model");
    let (context, said) = log::listen(|| loaded.embedding_context().map(drop));
    context.expect("a context");
    let real = said.buffers;
    let on_card = LlamaOptions { gpu_layers: GpuLayers::Auto, ..options };
    let plan = LoadPlan::on(vec![card(0, 80 * GB, 80 * GB)], &stored, &on_card).expect("a plan");
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
    let stored = stored_model();
    let options = LlamaOptions { context: Some(4096), parallel: Some(2), ..on_processor() };
    let mut loaded = LoadedModel::load_file(&stored, &stored.path, &options).expect("a model");
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
    loaded.offload = Offload::plan(&sizes, &[card(0, 80 * GB, 80 * GB)], GpuLayers::Auto);
    assert_eq!(added(&loaded), (0, second));
}

#[test]
fn the_estimates_are_what_llama_cpp_allocates() {
    let stored = stored_model();
    let file = stored.path.as_path();
    for (kv, slots, cells) in [
        (KvPrecision::F16, 1, 1024),
        (KvPrecision::F16, 64, 1024),
        (KvPrecision::F16, 8, 8192),
        (KvPrecision::Q8, 8, 4096),
        (KvPrecision::F16, 64, 32_768),
    ] {
        let options = LlamaOptions { kv, parallel: Some(slots), ..on_processor() };
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

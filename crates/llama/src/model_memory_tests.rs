//! The estimates compared with what llama.cpp allocates, with a real model.

use std::path::Path;

use hob_models::{ContextPlan, KvPrecision, ModelDirectory};

use super::*;
use crate::log;
use crate::options::{GpuLayers, LlamaOptions};

fn close(estimate: u64, real: u64) -> bool {
    estimate.abs_diff(real) * 10 <= real
}

fn close_to_range(estimate: u64, least: u64, most: u64) -> bool {
    (least..=most).contains(&estimate) || close(estimate, least) || close(estimate, most)
}

#[test]
fn the_estimates_are_what_llama_cpp_allocates() {
    let file = std::env::var("HOB_TEST_MODEL").expect("HOB_TEST_MODEL; run this test with './dev test'");
    let file = Path::new(&file);
    let directory = ModelDirectory::new(file.parent().expect("a directory"));
    let id = file.file_stem().and_then(|stem| stem.to_str()).expect("a name");
    let stored = directory.find(id).expect("a list").expect("the model");
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

//! What tests of several modules share: the real model that `./dev test` fetches, and graphics cards that this machine need not have.

use std::path::{Path, PathBuf};

use hob_core::ComputeDevice;
use hob_models::{ModelDirectory, StoredModel};
use hob_testkit::gguf::{MetadataValue, copy_with_metadata};
use hob_testkit::part;
use tempfile::TempDir;

use crate::cards::Card;
use crate::options::{GpuLayers, LlamaOptions};

pub(crate) const GB: u64 = 1 << 30;

/// What stays free of a card of 8 GB.
pub(crate) const RESERVE: u64 = GB / 2;

pub(crate) fn model_file() -> PathBuf {
    part("HOB_TEST_MODEL").into()
}

pub(crate) fn stored_model() -> StoredModel {
    find(&model_file())
}

/// The first layers of the model, for tests that read no answers.
pub(crate) fn short_model() -> StoredModel {
    find(&PathBuf::from(part("HOB_TEST_SHORT_MODEL")))
}

/// A copy of the model with other metadata.
pub(crate) fn changed_model(entries: &[(&str, MetadataValue<'_>)]) -> (TempDir, StoredModel) {
    let dir = TempDir::new().expect("a directory");
    let copy = dir.path().join("model.gguf");
    copy_with_metadata(&model_file(), &copy, entries).expect("a copy");
    (dir, find(&copy))
}

fn find(file: &Path) -> StoredModel {
    let directory = ModelDirectory::new(file.parent().expect("a directory"));
    let id = file.file_stem().and_then(|stem| stem.to_str()).expect("a name");
    directory.find(id).expect("a list").expect("the model")
}

/// One thread, and no card.
pub(crate) fn on_processor() -> LlamaOptions {
    LlamaOptions { threads: 1, gpu_layers: GpuLayers::Count(0), ..LlamaOptions::new("") }
}

pub(crate) fn card(index: usize, free: u64, total: u64) -> Card {
    let device = ComputeDevice {
        name: format!("CUDA{index}"),
        description: "a card".to_owned(),
        backend: "CUDA".to_owned(),
        memory_total: total,
        memory_free: free,
    };
    Card { index, device }
}

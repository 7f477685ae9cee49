//! Where the models are.

use std::path::{Path, PathBuf};

use hob_testkit::{link_model, part};
use tempfile::TempDir;

pub const MODEL: &str = "model";

/// The first layers of the real model: its answers are meaningless, and take a third of the time.
pub fn model_file() -> PathBuf {
    part("HOB_TEST_SHORT_MODEL").into()
}

/// The model that `./dev test` fetches, for tests that read its answers.
pub fn real_model_file() -> PathBuf {
    part("HOB_TEST_MODEL").into()
}

/// A directory with the short model in it under the name [`MODEL`].
pub fn models_dir() -> TempDir {
    dir_with(&model_file())
}

/// The same with the real model.
pub fn real_models_dir() -> TempDir {
    dir_with(&real_model_file())
}

fn dir_with(model: &Path) -> TempDir {
    let dir = TempDir::new().expect("a directory for models");
    std::os::unix::fs::symlink(model, dir.path().join("model.gguf")).expect("a link to the model");
    dir
}

/// The same for engines that are static, with this model. Those with the same `purpose` share it.
pub fn lasting_models_dir(purpose: &str, model: &Path) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("models").join(purpose);
    link_model(&dir, MODEL, model);
    dir
}

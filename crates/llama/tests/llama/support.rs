//! Where the model is.

use std::path::{Path, PathBuf};

use hob_testkit::link_test_model;
use tempfile::TempDir;

pub const MODEL: &str = "model";

/// The file that `./dev test` fetched.
pub fn model_file() -> PathBuf {
    let path = std::env::var_os("HOB_TEST_MODEL")
        .expect("HOB_TEST_MODEL is not set: these tests need a real model. Run them with './dev test'.");
    PathBuf::from(path)
}

/// A directory with the model in it under the name [`MODEL`].
pub fn models_dir() -> TempDir {
    let dir = TempDir::new().expect("a directory for models");
    std::os::unix::fs::symlink(model_file(), dir.path().join("model.gguf")).expect("a link to the model");
    dir
}

/// The same for engines that are static. Those with the same `purpose` share it.
pub fn lasting_models_dir(purpose: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("models").join(purpose);
    link_test_model(&dir, MODEL);
    dir
}

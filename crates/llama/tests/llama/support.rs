//! Where the model is.

use std::path::PathBuf;

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

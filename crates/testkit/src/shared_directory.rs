//! The directory of what tests share with those of other checkouts that run at the same time.

use std::path::PathBuf;

/// `./dev test` names it if the files of one run are elsewhere.
pub(crate) fn shared_directory() -> PathBuf {
    std::env::var_os("HOB_TEST_SHARED_DIRECTORY").map_or_else(std::env::temp_dir, PathBuf::from)
}

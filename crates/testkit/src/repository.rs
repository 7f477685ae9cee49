//! The files of this repository, for tests that keep what is written in them true.

use std::path::{Path, PathBuf};

/// Where the repository begins, without links and without `..` in it.
pub fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the repository that this was built in")
}

/// The pages of the book, in the order of their names.
pub fn pages() -> Vec<PathBuf> {
    let mut found = Vec::new();
    gather(&root().join("docs"), &mut found);
    found.sort();
    found
}

fn gather(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            gather(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

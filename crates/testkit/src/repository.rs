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

/// What a page says in backticks, where it is the path of a file or of a test: `path/to/file.rs::name_of_the_test`.
pub fn named_paths(page: &str) -> Vec<&str> {
    let quoted = page.split('`').skip(1).step_by(2);
    quoted.filter(|words| is_path(words)).collect()
}

fn is_path(words: &str) -> bool {
    ["crates/", "packaging/", "tests/"].iter().any(|start| words.starts_with(start)) || words == "deny.toml"
}

/// Fails if the page names a file or a test that does not exist.
pub fn assert_named_paths_exist(page: &str) {
    for path in named_paths(page) {
        let (file, test) = path.split_once("::").unwrap_or((path, ""));
        let text = std::fs::read_to_string(root().join(file))
            .unwrap_or_else(|error| panic!("the page names {file}: {error}"));
        let is_there = test.is_empty() || text.contains(&format!("fn {test}("));
        assert!(is_there, "the page names the test {test}, which is not in {file}");
    }
}

/// The Rust files below a directory, without those that have only tests.
pub fn product_files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            files.extend(product_files(&path));
        } else if name.ends_with(".rs") && !name.ends_with("_tests.rs") && name != "tests.rs" {
            files.push(path);
        }
    }
    files
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

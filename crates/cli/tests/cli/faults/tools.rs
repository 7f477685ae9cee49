//! The programs in `tests/faults`, compiled when a test needs them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use hob_testkit::repository::root;

/// Ends a program at a change of a file, and takes back what was not synced.
pub fn disk_faults() -> &'static str {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    PROGRAM.get_or_init(|| text(&built("disk_faults", &["trace.c", "changes.c", "restore.c"], &[])))
}

/// A library that moves the clock of the program that loads it.
pub fn clock_library() -> &'static str {
    static LIBRARY: OnceLock<String> = OnceLock::new();
    LIBRARY.get_or_init(|| text(&built("clock.so", &["clock.c"], &["-shared", "-fPIC"])))
}

fn text(path: &Path) -> String {
    path.to_str().expect("text").to_owned()
}

fn built(name: &str, sources: &[&str], options: &[&str]) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let unfinished = directory.join(format!("{name}.{}", std::process::id()));
    let sources = sources.iter().map(|source| root().join("tests/faults").join(source));
    let status = Command::new("cc")
        .args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror"])
        .args(options)
        .args(sources)
        .arg("-o")
        .arg(&unfinished)
        .status()
        .expect("a C compiler, which './dev test --faults' installs");
    assert!(status.success(), "{name} does not compile");
    // Another test may run the file of this name now.
    let path = directory.join(name);
    std::fs::rename(&unfinished, &path).expect("renamed");
    path
}

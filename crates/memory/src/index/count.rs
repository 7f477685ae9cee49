//! Counts the files in the background, for progress.

use std::path::Path;

use tokio_util::sync::CancellationToken;

use super::options::{IndexProgress, IndexProgressFn};
use super::walk::{Step, walk};

/// The count is reported after this many files.
const REPORT_INTERVAL: u64 = 1_000;

/// Reports the number of files below `root`, and when it is final. Reads none of them. Blocks until done or stopped.
pub fn count(root: &Path, progress: IndexProgressFn<'_>, stop: &CancellationToken) {
    let mut files = 0;
    for step in walk(root) {
        if stop.is_cancelled() {
            return;
        }
        // Indexing reports directories that cannot be read.
        if let Step::File(_) = step {
            files += 1;
            if files % REPORT_INTERVAL == 0 {
                progress(IndexProgress::Total { files, is_final: false });
            }
        }
    }
    progress(IndexProgress::Total { files, is_final: true });
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Mutex;

    use super::*;

    fn told(root: &Path, stop: &CancellationToken) -> Vec<(u64, bool)> {
        let told = Mutex::new(Vec::new());
        let listener = |progress: IndexProgress<'_>| {
            if let IndexProgress::Total { files, is_final } = progress {
                told.lock().unwrap().push((files, is_final));
            }
        };
        count(root, &listener, stop);
        told.into_inner().unwrap()
    }

    #[test]
    fn the_count_grows_until_all_files_are_counted() {
        let root = tempfile::tempdir().unwrap();
        for number in 0..2_100 {
            fs::write(root.path().join(format!("{number}.md")), "x").unwrap();
        }
        fs::write(root.path().join(".hidden"), "x").unwrap();
        let stop = CancellationToken::new();
        assert_eq!(told(root.path(), &stop), [(1_000, false), (2_000, false), (2_100, true)]);
        stop.cancel();
        assert_eq!(told(root.path(), &stop), []);
    }
}

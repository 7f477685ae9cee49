//! Counts what there is to look at, beside the indexing itself, for those who want to know how far it is.

use std::path::Path;

use tokio_util::sync::CancellationToken;

use super::walk::{Step, walk};
use super::{IndexProgress, IndexProgressFn};

/// The sum is reported after so many more files.
const TOLD_EVERY: u64 = 1_000;

/// Tells how many files there are at `root` and below, as it meets them, and says when that is all. Reads none of them.
/// Blocks; says nothing more once it is stopped.
pub fn count(root: &Path, progress: IndexProgressFn<'_>, stop: &CancellationToken) {
    let mut files = 0;
    for step in walk(root) {
        if stop.is_cancelled() {
            return;
        }
        // Indexing reports directories that cannot be read.
        if let Step::File(_) = step {
            files += 1;
            if files % TOLD_EVERY == 0 {
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
    fn the_sum_grows_until_all_that_would_be_indexed_is_counted() {
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

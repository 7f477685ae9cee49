//! The limit of open files. Every connection is a file, and so is its connection to an engine.

/// Raises the limit as far as the system allows. The usual 1,024 is far below the server's own limits.
pub fn raise_open_files() {
    #[cfg(unix)]
    unix::raise();
}

#[cfg(unix)]
mod unix {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    /// More is never needed. Some containers allow a thousand times as many, and some programs that tools start close every
    /// number up to the limit.
    const MAX_FILES: u64 = 1 << 20;

    /// What macOS accepts when it reports no limit but refuses larger numbers.
    const MACOS_MAX_FILES: u64 = 10_240;

    pub(super) fn raise() {
        let before = getrlimit(Resource::Nofile);
        let raised = wanted(before)
            .into_iter()
            .find(|files| setrlimit(Resource::Nofile, Rlimit { current: Some(*files), ..before }).is_ok());
        match raised {
            Some(files) => {
                tracing::debug!(from = before.current, to = files, "raised the limit of open files")
            }
            None => tracing::debug!(limit = before.current, "the limit of open files stays as it is"),
        }
    }

    /// Higher limits than the current one, the highest first.
    fn wanted(present: Rlimit) -> Vec<u64> {
        let Some(current) = present.current else { return Vec::new() };
        let most = present.maximum.unwrap_or(MAX_FILES).min(MAX_FILES);
        [most, MACOS_MAX_FILES.min(most)].into_iter().filter(|files| *files > current).collect()
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_limit_is_only_ever_raised_and_not_beyond_reason() {
            let limit = |current, maximum| Rlimit { current, maximum };
            for (present, expected) in [
                (limit(Some(1024), Some(4096)), vec![4096, 4096]),
                (limit(Some(1024), Some(524_288)), vec![524_288, MACOS_MAX_FILES]),
                (limit(Some(20_000), Some(524_288)), vec![524_288]),
                (limit(Some(1024), Some(1_073_741_816)), vec![MAX_FILES, MACOS_MAX_FILES]),
                (limit(Some(256), None), vec![MAX_FILES, MACOS_MAX_FILES]),
                (limit(Some(4096), Some(4096)), vec![]),
                (limit(Some(2 << 20), None), vec![]),
                (limit(None, None), vec![]),
            ] {
                assert_eq!(wanted(present), expected, "{present:?}");
            }
        }
    }
}

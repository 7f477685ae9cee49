//! How many files this process may have open at once: every connection is one, and so is the one to the engine behind it.

/// Raises the limit as far as the system lets us. Most begin at 1,024, which a server reaches long before its own limits.
pub fn raise_open_files() {
    #[cfg(unix)]
    unix::raise();
}

#[cfg(unix)]
mod unix {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    /// More is never needed. In some containers the limit is a thousand times this, and there are programs, such as tools may
    /// start, that try every number up to it.
    const MOST: u64 = 1 << 20;

    /// What macOS takes where it has no limit of its own, and yet refuses what is more.
    const MODEST: u64 = 10_240;

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

    /// The limits that are better than the present one, the best first.
    fn wanted(present: Rlimit) -> Vec<u64> {
        let Some(current) = present.current else { return Vec::new() };
        let most = present.maximum.unwrap_or(MOST).min(MOST);
        [most, MODEST.min(most)].into_iter().filter(|files| *files > current).collect()
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_limit_is_only_ever_raised_and_not_beyond_reason() {
            let limit = |current, maximum| Rlimit { current, maximum };
            for (present, expected) in [
                (limit(Some(1024), Some(4096)), vec![4096, 4096]),
                (limit(Some(1024), Some(524_288)), vec![524_288, MODEST]),
                (limit(Some(20_000), Some(524_288)), vec![524_288]),
                (limit(Some(1024), Some(1_073_741_816)), vec![MOST, MODEST]),
                (limit(Some(256), None), vec![MOST, MODEST]),
                (limit(Some(4096), Some(4096)), vec![]),
                (limit(Some(2 << 20), None), vec![]),
                (limit(None, None), vec![]),
            ] {
                assert_eq!(wanted(present), expected, "{present:?}");
            }
        }
    }
}

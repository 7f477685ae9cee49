//! Limits runs outside the schedule. They need no slot of the scheduler, so nothing else limits how many run at once.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::types::TaskError;

/// Runs at once, of all keys together.
pub(crate) const MOST_RUNS: usize = 16;

/// Runs at once of the tasks of one key.
pub(crate) const MOST_RUNS_OF_KEY: usize = 4;

/// The active runs outside the schedule: the key of each task, if it has one.
#[derive(Default)]
pub(crate) struct ManualRuns(Mutex<Vec<Option<Arc<str>>>>);

impl ManualRuns {
    /// Counts a run, unless there are too many.
    pub(crate) fn begin(self: &Arc<Self>, key: Option<&Arc<str>>) -> Result<ManualRun, TaskError> {
        let mut active = self.0.lock();
        if active.len() >= MOST_RUNS {
            return Err(TaskError::TooManyRuns { key: None, most: MOST_RUNS });
        }
        if let Some(key) = key
            && active.iter().flatten().filter(|other| *other == key).count() >= MOST_RUNS_OF_KEY
        {
            return Err(TaskError::TooManyRuns { key: Some(key.to_string()), most: MOST_RUNS_OF_KEY });
        }
        active.push(key.cloned());
        Ok(ManualRun { runs: Arc::clone(self), key: key.cloned() })
    }
}

/// A counted run, until this is dropped.
pub(crate) struct ManualRun {
    runs: Arc<ManualRuns>,
    key: Option<Arc<str>>,
}

impl Drop for ManualRun {
    fn drop(&mut self) {
        let mut active = self.runs.0.lock();
        if let Some(at) = active.iter().position(|key| *key == self.key) {
            active.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runs_of_one_key_and_of_all_are_limited() {
        let runs = Arc::new(ManualRuns::default());
        let begin = |key: Option<&str>| runs.begin(key.map(Arc::from).as_ref());
        let refusal = |key: Option<&str>| begin(key).map(drop).unwrap_err().to_string();
        let mut active: Vec<ManualRun> = (0..MOST_RUNS_OF_KEY).map(|_| begin(Some("ana")).unwrap()).collect();
        assert_eq!(
            refusal(Some("ana")),
            "4 runs of the key 'ana' outside the schedule are active; try again when one has ended"
        );
        active.push(begin(Some("ben")).unwrap());
        active.remove(0);
        active.push(begin(Some("ana")).unwrap());
        // The owner has no key.
        while active.len() < MOST_RUNS {
            active.push(begin(None).unwrap());
        }
        for key in [None, Some("ben")] {
            assert_eq!(refusal(key), "16 runs outside the schedule are active; try again when one has ended");
        }
        drop(active);
        assert!(begin(Some("ana")).is_ok());
    }
}

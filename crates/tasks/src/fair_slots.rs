//! Which keys the scheduled runs of this process belong to, so that the tasks of one key do not take all slots.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// The key of a task; `None` for one of the owner.
pub(crate) type TaskKey = Option<Arc<str>>;

/// The number of active runs of each key.
#[derive(Default)]
pub(crate) struct RunningKeys(Mutex<HashMap<TaskKey, usize>>);

/// What may be claimed next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FairClaim {
    /// The keys that have their share of the slots.
    pub(crate) except: Vec<TaskKey>,
    /// So many that no other key gets more than its share.
    pub(crate) limit: usize,
}

impl RunningKeys {
    pub(crate) fn begin(self: &Arc<Self>, key: TaskKey) -> RunningKey {
        *self.0.lock().entry(key.clone()).or_default() += 1;
        RunningKey { keys: Arc::clone(self), key }
    }

    /// The claim of tasks whose keys have fewer than `share` runs.
    pub(crate) fn fair_claim(&self, share: usize) -> FairClaim {
        let counts = self.0.lock();
        let except =
            counts.iter().filter(|(_, count)| **count >= share).map(|(key, _)| key.clone()).collect();
        let most = counts.values().copied().filter(|count| *count < share).max().unwrap_or(0);
        FairClaim { except, limit: share - most }
    }
}

/// A counted run, until this is dropped.
pub(crate) struct RunningKey {
    keys: Arc<RunningKeys>,
    key: TaskKey,
}

impl Drop for RunningKey {
    fn drop(&mut self) {
        let mut counts = self.keys.0.lock();
        if let Some(count) = counts.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_with_its_share_of_the_slots_is_excepted() {
        let keys = Arc::new(RunningKeys::default());
        let ana: TaskKey = Some("ana".into());
        assert_eq!(keys.fair_claim(2), FairClaim { except: vec![], limit: 2 });
        let first = keys.begin(ana.clone());
        assert_eq!(keys.fair_claim(2), FairClaim { except: vec![], limit: 1 });
        let _second = keys.begin(ana.clone());
        assert_eq!(keys.fair_claim(2), FairClaim { except: vec![ana.clone()], limit: 2 });
        let _owner = keys.begin(None);
        assert_eq!(keys.fair_claim(2), FairClaim { except: vec![ana], limit: 1 });
        drop(first);
        assert_eq!(keys.fair_claim(2), FairClaim { except: vec![], limit: 1 });
    }
}

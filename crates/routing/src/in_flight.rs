//! Questions that models are answering, by class. A choice counts them as tries.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::question_class::QuestionClass;

#[derive(Clone, Default)]
pub(crate) struct InFlight {
    counts: Arc<Mutex<Counts>>,
}

type Counts = HashMap<QuestionClass, BTreeMap<String, u64>>;

impl InFlight {
    /// The number of questions of a class that each model is answering.
    pub(crate) fn by_model(&self, class: QuestionClass) -> BTreeMap<String, u64> {
        self.counts.lock().get(&class).cloned().unwrap_or_default()
    }

    pub(crate) fn begin(&self, class: QuestionClass, model: &str) -> InFlightGuard {
        *self.counts.lock().entry(class).or_default().entry(model.to_owned()).or_default() += 1;
        InFlightGuard { in_flight: self.clone(), class, model: model.to_owned() }
    }
}

/// Counts one question until it is dropped.
pub(crate) struct InFlightGuard {
    in_flight: InFlight,
    class: QuestionClass,
    model: String,
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        let mut counts = self.in_flight.counts.lock();
        if let Some(models) = counts.get_mut(&self.class)
            && let Some(count) = models.get_mut(&self.model)
        {
            *count -= 1;
            // Removes models that may no longer exist, so that the map stays small.
            if *count == 0 {
                models.remove(&self.model);
            }
        }
    }
}

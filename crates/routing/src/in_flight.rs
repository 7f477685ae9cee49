//! Questions that models are still answering, by class. A choice counts them as tries, because their rewards are still to come.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::question_class::QuestionClass;

/// How many questions models are at work on, by class.
#[derive(Clone, Default)]
pub(crate) struct UnderWay {
    counts: Arc<Mutex<Counts>>,
}

type Counts = HashMap<QuestionClass, BTreeMap<String, u64>>;

impl UnderWay {
    pub(crate) fn of(&self, class: QuestionClass) -> BTreeMap<String, u64> {
        self.counts().get(&class).cloned().unwrap_or_default()
    }

    pub(crate) fn begin(&self, class: QuestionClass, model: &str) -> AtWork {
        *self.counts().entry(class).or_default().entry(model.to_owned()).or_default() += 1;
        AtWork { under_way: self.clone(), class, model: model.to_owned() }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One question that a model is at work on, for as long as this lives.
pub(crate) struct AtWork {
    under_way: UnderWay,
    class: QuestionClass,
    model: String,
}

impl Drop for AtWork {
    fn drop(&mut self) {
        let mut counts = self.under_way.counts();
        if let Some(models) = counts.get_mut(&self.class)
            && let Some(count) = models.get_mut(&self.model)
        {
            *count -= 1;
            // Names of models that are gone do not gather.
            if *count == 0 {
                models.remove(&self.model);
            }
        }
    }
}

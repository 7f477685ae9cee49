//! Running totals since the start of Hob, in atomics, so that counting costs next to nothing. Knows nothing of how the figures
//! are displayed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use crate::inference::{Inference, InferenceEnd, InferenceLog};

/// Upper bounds of the buckets in seconds. The last bucket has none.
pub const BOUNDS: [f64; 15] =
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];

/// The number of models that are counted by name.
const MAX_MODELS: usize = 100;

/// The number of keys that are counted by name.
const MAX_KEYS: usize = 50;

/// The name for all other keys. No key can have it.
const OTHER_KEYS: &str = "(other)";

/// The name for all other models, and those that never answered.
const OTHER: &str = "other";

#[derive(Debug, Default)]
pub struct Histogram {
    buckets: [AtomicU64; BOUNDS.len() + 1],
    microseconds: AtomicU64,
}

impl Histogram {
    pub fn observe(&self, time: Duration) {
        let seconds = time.as_secs_f64();
        let bucket = BOUNDS.iter().position(|bound| seconds <= *bound).unwrap_or(BOUNDS.len());
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        let microseconds = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.microseconds.fetch_add(microseconds, Ordering::Relaxed);
    }

    /// The cumulative count for each of [`BOUNDS`], and the total.
    pub fn cumulative(&self) -> [u64; BOUNDS.len() + 1] {
        let mut sum = 0;
        std::array::from_fn(|bucket| {
            sum += self.buckets[bucket].load(Ordering::Relaxed);
            sum
        })
    }

    /// In seconds.
    pub fn sum(&self) -> f64 {
        self.microseconds.load(Ordering::Relaxed) as f64 / 1e6
    }
}

#[derive(Debug)]
pub struct ModelMetrics {
    pub engine: String,
    pub model: String,
    pub counts: CallCounts,
    pub cached_tokens: AtomicU64,
    /// In microjoules, of measured calls.
    pub energy: AtomicU64,
    pub latency: Histogram,
    /// Of streams only.
    pub first_token: Histogram,
}

impl ModelMetrics {
    fn new(engine: &str, model: &str) -> Self {
        ModelMetrics {
            engine: engine.to_owned(),
            model: model.to_owned(),
            counts: CallCounts::default(),
            cached_tokens: AtomicU64::default(),
            energy: AtomicU64::default(),
            latency: Histogram::default(),
            first_token: Histogram::default(),
        }
    }

    fn add(&self, inference: &Inference) {
        self.counts.add(inference);
        self.cached_tokens.fetch_add(inference.usage.cached_tokens.unwrap_or(0), Ordering::Relaxed);
        if let Some(energy) = inference.energy {
            self.energy.fetch_add(energy.microjoules(), Ordering::Relaxed);
        }
        self.latency.observe(inference.latency);
        if let Some(first_token) = inference.first_token {
            self.first_token.observe(first_token);
        }
    }
}

/// The calls of one named key.
#[derive(Debug)]
pub struct KeyMetrics {
    pub key: String,
    pub counts: CallCounts,
}

impl KeyMetrics {
    fn new(key: &str) -> Self {
        KeyMetrics { key: key.to_owned(), counts: CallCounts::default() }
    }
}

/// Calls by their ends, and their tokens.
#[derive(Debug, Default)]
pub struct CallCounts {
    pub complete: AtomicU64,
    pub failed: AtomicU64,
    pub cancelled: AtomicU64,
    pub prompt_tokens: AtomicU64,
    pub completion_tokens: AtomicU64,
}

impl CallCounts {
    fn add(&self, inference: &Inference) {
        let ending = match inference.ending {
            InferenceEnd::Complete(_) => &self.complete,
            InferenceEnd::Failed(_) => &self.failed,
            InferenceEnd::Cancelled => &self.cancelled,
        };
        ending.fetch_add(1, Ordering::Relaxed);
        self.prompt_tokens.fetch_add(inference.usage.prompt_tokens, Ordering::Relaxed);
        self.completion_tokens.fetch_add(inference.usage.completion_tokens, Ordering::Relaxed);
    }

    /// The calls by their ends.
    pub fn ends(&self) -> [(&'static str, u64); 3] {
        [("complete", &self.complete), ("failed", &self.failed), ("cancelled", &self.cancelled)]
            .map(|(end, count)| (end, count.load(Ordering::Relaxed)))
    }
}

/// Counts every inference, and passes it on to the log.
pub struct InferenceMetrics {
    record: Arc<dyn InferenceLog>,
    /// Replaced when a model answers for the first time.
    models: ArcSwap<Vec<Arc<ModelMetrics>>>,
    /// Replaced when a key is used for the first time.
    keys: ArcSwap<Vec<Arc<KeyMetrics>>>,
    /// Held during a replacement.
    growing: Mutex<()>,
}

impl InferenceMetrics {
    pub fn before(record: Arc<dyn InferenceLog>) -> Self {
        InferenceMetrics {
            record,
            models: ArcSwap::default(),
            keys: ArcSwap::default(),
            growing: Mutex::default(),
        }
    }

    pub fn models(&self) -> Vec<Arc<ModelMetrics>> {
        self.models.load().to_vec()
    }

    /// The named keys that were used, in the order of their first use.
    pub fn keys(&self) -> Vec<Arc<KeyMetrics>> {
        self.keys.load().to_vec()
    }

    fn count(&self, inference: &Inference) {
        let models = self.models.load();
        match find(&models, &inference.engine, &inference.model) {
            Some(known) => known.add(inference),
            None => self.name(inference).add(inference),
        }
        if let Some(key) = &inference.key {
            let keys = self.keys.load();
            match keys.iter().find(|known| *known.key == **key) {
                Some(known) => known.counts.add(inference),
                None => self.name_key(key).counts.add(inference),
            }
        }
    }

    /// The counters of a key that is not known yet, or those of all further keys.
    fn name_key(&self, key: &str) -> Arc<KeyMetrics> {
        let _growing = self.growing.lock();
        let keys = self.keys.load();
        // One place is for all further keys.
        let name = if keys.len() < MAX_KEYS { key } else { OTHER_KEYS };
        // Another thread may have added it first.
        if let Some(known) = keys.iter().find(|known| known.key == key || known.key == name) {
            return Arc::clone(known);
        }
        let new = Arc::new(KeyMetrics::new(name));
        self.keys.store(Arc::new(keys.iter().chain([&new]).map(Arc::clone).collect()));
        new
    }

    /// A model is counted by name once it has answered, because callers can request models that do not exist.
    fn name(&self, inference: &Inference) -> Arc<ModelMetrics> {
        let _growing = self.growing.lock();
        let models = self.models.load();
        let answered =
            matches!(inference.ending, InferenceEnd::Complete(_)) || inference.first_token.is_some();
        let name = if answered && models.len() < MAX_MODELS { &inference.model } else { OTHER };
        // Another thread may have added it first.
        if let Some(known) = find(&models, &inference.engine, name) {
            return Arc::clone(known);
        }
        let new = Arc::new(ModelMetrics::new(&inference.engine, name));
        let longer = models.iter().chain([&new]).map(Arc::clone).collect();
        self.models.store(Arc::new(longer));
        new
    }
}

fn find<'a>(models: &'a [Arc<ModelMetrics>], engine: &str, model: &str) -> Option<&'a Arc<ModelMetrics>> {
    models.iter().find(|known| known.model == model && known.engine == engine)
}

impl InferenceLog for InferenceMetrics {
    fn record(&self, inference: Inference) {
        self.count(&inference);
        self.record.record(inference);
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use hob_core::{FinishReason, RequestSource, Usage};

    use super::*;
    use crate::inference::NoInferenceLog;

    fn inference(model: &str, ending: InferenceEnd) -> Inference {
        Inference {
            started: SystemTime::UNIX_EPOCH,
            run: "r".into(),
            source: RequestSource::Server,
            engine: "cloud".into(),
            model: model.into(),
            agent: None,
            key: None,
            end_user: None,
            details: Default::default(),
            streamed: false,
            usage: Usage {
                prompt_tokens: 3,
                completion_tokens: 2,
                cached_tokens: Some(1),
                reasoning_tokens: None,
                load_time: None,
            },
            estimated: false,
            latency: Duration::from_millis(70),
            first_token: None,
            energy: None,
            ending,
        }
    }

    fn complete(model: &str) -> Inference {
        inference(model, InferenceEnd::Complete(FinishReason::Stop))
    }

    #[test]
    fn a_time_falls_into_the_first_bucket_that_holds_it() {
        let histogram = Histogram::default();
        for milliseconds in [5, 6, 300_000, 300_001] {
            histogram.observe(Duration::from_millis(milliseconds));
        }
        let cumulative = histogram.cumulative();
        assert_eq!(
            (cumulative[0], cumulative[1], cumulative[13], cumulative[14], cumulative[15]),
            (1, 2, 2, 3, 4)
        );
        assert!((histogram.sum() - 600.012).abs() < 1e-9, "{}", histogram.sum());
    }

    #[test]
    fn names_are_bounded_and_need_an_answer() {
        let metrics = InferenceMetrics::before(Arc::new(NoInferenceLog));
        metrics.record(inference("never-heard-of", InferenceEnd::Failed("no".into())));
        for number in 0..2 * MAX_MODELS {
            metrics.record(complete(&format!("m{number}")));
        }
        metrics.record(inference("m0", InferenceEnd::Cancelled));
        let models = metrics.models();
        assert_eq!(models.len(), MAX_MODELS);
        let of = |name: &str| models.iter().find(|metrics| metrics.model == name).unwrap();
        let counts = |name: &str| {
            let metrics = of(name);
            [&metrics.counts.complete, &metrics.counts.failed, &metrics.counts.cancelled]
                .map(|count| count.load(Ordering::Relaxed))
        };
        assert_eq!(counts("m0"), [1, 0, 1]);
        assert_eq!(counts(OTHER), [MAX_MODELS as u64 + 1, 1, 0]);
        assert!(models.iter().all(|metrics| metrics.model != "never-heard-of"));
        assert_eq!(of("m0").counts.prompt_tokens.load(Ordering::Relaxed), 6);
    }

    #[test]
    fn calls_are_counted_by_key_and_the_number_of_keys_is_bounded() {
        let metrics = InferenceMetrics::before(Arc::new(NoInferenceLog));
        let by = |key: &str, ending| Inference { key: Some(key.into()), ..inference("m", ending) };
        metrics.record(complete("m"));
        for number in 0..MAX_KEYS + 3 {
            metrics.record(by(&format!("k{number}"), InferenceEnd::Complete(FinishReason::Stop)));
        }
        metrics.record(by("k0", InferenceEnd::Failed("no".into())));
        metrics.record(by("k51", InferenceEnd::Cancelled));
        let keys = metrics.keys();
        let counts = |name: &str| {
            let of = keys.iter().find(|metrics| metrics.key == name).unwrap();
            [
                &of.counts.complete,
                &of.counts.failed,
                &of.counts.cancelled,
                &of.counts.prompt_tokens,
                &of.counts.completion_tokens,
            ]
            .map(|count| count.load(Ordering::Relaxed))
        };
        assert_eq!(keys.len(), MAX_KEYS + 1);
        assert_eq!(counts("k0"), [1, 1, 0, 6, 4]);
        assert_eq!(counts(OTHER_KEYS), [3, 0, 1, 12, 8]);
    }
}

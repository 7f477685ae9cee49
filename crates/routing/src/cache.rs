//! Caches what was last read from the store, so that a choice does not wait for the database.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use hob_core::{RequestSource, Usage};
use hob_db::{DbResult, Storage};
use parking_lot::Mutex;

use crate::measurements::{MeasuredSpeed, Measurements};
use crate::question_class::QuestionClass;
use crate::records::{ClassRecord, Knowledge, RoutingDecision};
use crate::reward::AnswerOutcome;
use crate::reward_updates::{learn_asked_again, learn_outcome, learn_rating};
use crate::store::{self, NewRating, RoutingStore};

/// The knowledge is read again after this time, because other processes learn too.
const KNOWLEDGE_MAX_AGE: Duration = Duration::from_secs(10);

/// Speeds are sums over days, and change slowly.
const SPEEDS_MAX_AGE: Duration = Duration::from_secs(60);

/// Days of calls from which the speed of a model is measured.
const SPEED_DAYS: u32 = 7;

/// The number of models whose speed is read.
const MAX_SPEEDS: u32 = 500;

/// A question that is repeated within this time was not answered well.
const ASKED_AGAIN_WITHIN: Duration = Duration::from_secs(600);

/// The store, and what was last read from it. Access to the store blocks.
#[derive(Default)]
pub(crate) struct RoutingCache {
    /// `None` if nothing is stored.
    database: Option<Storage>,
    /// The store in the database, once it is used.
    store: OnceLock<Arc<dyn RoutingStore>>,
    measurements: Option<Arc<dyn Measurements>>,
    last_read: Mutex<LastRead>,
}

#[derive(Default)]
struct LastRead {
    knowledge: Knowledge,
    /// Tokens per second, by engine and model.
    speeds: HashMap<String, HashMap<String, f64>>,
    read: Option<Instant>,
    speeds_read: Option<Instant>,
}

impl RoutingCache {
    pub(crate) fn new(database: Storage, measurements: Option<Arc<dyn Measurements>>) -> Self {
        RoutingCache { database: Some(database), measurements, ..RoutingCache::default() }
    }

    pub(crate) fn class_record(&self, class: QuestionClass) -> ClassRecord {
        self.last_read.lock().knowledge.get(&class).cloned().unwrap_or_default()
    }

    pub(crate) fn speed(&self, engine: &str, model: &str) -> Option<f64> {
        self.last_read.lock().speeds.get(engine)?.get(model).copied()
    }

    pub(crate) fn price(&self, model: &str, usage: Usage) -> Option<f64> {
        self.measurements.as_ref()?.price(model, usage)
    }

    /// Saves a choice. If the same question was answered recently, that answer was not good enough.
    pub(crate) fn save(&self, decision: &RoutingDecision) -> DbResult<()> {
        let Some(store) = self.open()? else { return Ok(()) };
        let since = decision.decided.checked_sub(ASKED_AGAIN_WITHIN).unwrap_or(SystemTime::UNIX_EPOCH);
        let asked_by_people = !matches!(decision.source, RequestSource::Scheduler | RequestSource::Bench);
        let before = if asked_by_people { store.asked_before(decision, since)? } else { None };
        store.save(decision)?;
        if let Some(run) = before {
            store.learn(&run, &mut learn_asked_again)?;
        }
        Ok(())
    }

    /// Deletes a choice, because another model has answered.
    pub(crate) fn withdraw(&self, run: &str) -> DbResult<()> {
        self.open()?.map_or(Ok(()), |store| store.withdraw(run))
    }

    /// Learns from the end of an answer.
    pub(crate) fn record_outcome(&self, run: &str, outcome: &AnswerOutcome) -> DbResult<()> {
        let Some(store) = self.open()? else { return Ok(()) };
        store.learn(run, &mut |stored, record| learn_outcome(stored, record, outcome)).map(drop)
    }

    /// Saves a rating and learns from it. Returns whether the router chose the model.
    pub(crate) fn rate(&self, new: &NewRating<'_>) -> DbResult<bool> {
        let Some(store) = self.open()? else { return Ok(false) };
        let learnt = store.rate(new, &mut |stored, record| learn_rating(stored, record, new.rating))?;
        self.read_knowledge(store.as_ref())?;
        Ok(learnt)
    }

    /// Reads the knowledge and, less often, the speeds.
    pub(crate) fn read(&self) -> DbResult<()> {
        if let Some(store) = self.find()? {
            self.read_knowledge(store.as_ref())?;
        }
        self.last_read.lock().read = Some(Instant::now());
        let due = self.last_read.lock().speeds_read.is_none_or(|read| read.elapsed() >= SPEEDS_MAX_AGE);
        if due {
            let speeds = self.measure()?;
            let mut last = self.last_read.lock();
            last.speeds = speeds;
            last.speeds_read = Some(Instant::now());
        }
        Ok(())
    }

    /// Reads the knowledge after a write.
    pub(crate) fn renew(&self) -> DbResult<()> {
        self.open()?.map_or(Ok(()), |store| self.read_knowledge(store.as_ref()))
    }

    fn read_knowledge(&self, store: &dyn RoutingStore) -> DbResult<()> {
        let knowledge = store.knowledge()?;
        let mut last = self.last_read.lock();
        last.knowledge = knowledge;
        last.read = Some(Instant::now());
        Ok(())
    }

    fn measure(&self) -> DbResult<HashMap<String, HashMap<String, f64>>> {
        let mut speeds: HashMap<String, HashMap<String, f64>> = HashMap::new();
        let Some(measurements) = &self.measurements else { return Ok(speeds) };
        for speed in measurements.speeds(SPEED_DAYS, MAX_SPEEDS)? {
            let MeasuredSpeed { engine, model, tokens_per_second } = speed;
            speeds.entry(engine).or_default().insert(model, tokens_per_second);
        }
        Ok(speeds)
    }

    /// The store, which is created if necessary; `None` if nothing is stored.
    fn open(&self) -> DbResult<Option<Arc<dyn RoutingStore>>> {
        let Some(database) = &self.database else { return Ok(None) };
        let store = match self.store.get() {
            Some(store) => store,
            None => {
                let store = store::open(database)?;
                self.store.get_or_init(|| store)
            }
        };
        Ok(Some(Arc::clone(store)))
    }

    /// The store if it exists. Creates nothing.
    pub(crate) fn find(&self) -> DbResult<Option<Arc<dyn RoutingStore>>> {
        if self.database.as_ref().is_some_and(Storage::exists) { self.open() } else { Ok(None) }
    }

    pub(crate) fn has_database(&self) -> bool {
        self.database.is_some()
    }

    pub(crate) fn is_stale(&self) -> bool {
        let mut last = self.last_read.lock();
        let stale = last.read.is_none_or(|read| read.elapsed() >= KNOWLEDGE_MAX_AGE);
        if stale {
            // One caller reads again.
            last.read = Some(Instant::now());
        }
        stale
    }
}

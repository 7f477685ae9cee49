//! What was last read from the store, so that a choice waits for no database; and what is written to it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use hob_core::{RequestSource, Usage};
use hob_db::{DatabaseError, LazyDatabase};

use crate::lessons::{asked_again, ended, rated};
use crate::measurements::{MeasuredSpeed, Measurements};
use crate::question_class::QuestionClass;
use crate::records::{ClassRecord, Knowledge, RoutingDecision};
use crate::reward::AnswerOutcome;
use crate::store::{self, NewRating, RoutingStore};

/// What was learnt is read again after this time, because other processes learn too.
const FRESH: Duration = Duration::from_secs(10);

/// Speeds are sums over days, and change slowly.
const SPEEDS_FRESH: Duration = Duration::from_secs(60);

/// Days whose calls tell how fast a model is.
const SPEED_DAYS: u32 = 7;

/// Models whose speed is known, at most.
const MOST_SPEEDS: u32 = 500;

/// A question that is asked again within this time was not answered well.
const ASKED_AGAIN_WITHIN: Duration = Duration::from_secs(600);

/// The store, and what was last read from it. Everything that reads or writes the store blocks.
#[derive(Default)]
pub(crate) struct Shelf {
    /// `None` where nothing is stored.
    database: Option<LazyDatabase>,
    /// `None` where nothing is measured.
    measurements: Option<Arc<dyn Measurements>>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    knowledge: Knowledge,
    /// Tokens in a second, by engine and model.
    speeds: HashMap<String, HashMap<String, f64>>,
    read: Option<Instant>,
    speeds_read: Option<Instant>,
}

impl Shelf {
    pub(crate) fn new(database: LazyDatabase, measurements: Option<Arc<dyn Measurements>>) -> Self {
        Shelf { database: Some(database), measurements, known: Mutex::default() }
    }

    /// What was learnt of a class.
    pub(crate) fn class(&self, class: QuestionClass) -> ClassRecord {
        self.known().knowledge.get(&class).cloned().unwrap_or_default()
    }

    /// Tokens that a model writes in a second, where that was measured.
    pub(crate) fn speed(&self, engine: &str, model: &str) -> Option<f64> {
        self.known().speeds.get(engine)?.get(model).copied()
    }

    /// What an answer of a cloud model cost in dollars, where that is known.
    pub(crate) fn price(&self, model: &str, usage: Usage) -> Option<f64> {
        self.measurements.as_ref()?.price(model, usage)
    }

    /// Keeps a choice. If it is for a question that was just answered, that answer was not good enough.
    pub(crate) fn keep(&self, decision: &RoutingDecision) -> Result<(), DatabaseError> {
        let Some(store) = self.open()? else { return Ok(()) };
        let since = decision.decided.checked_sub(ASKED_AGAIN_WITHIN).unwrap_or(SystemTime::UNIX_EPOCH);
        let asked_by_people = !matches!(decision.source, RequestSource::Scheduler | RequestSource::Bench);
        let before = if asked_by_people { store.asked_before(decision, since)? } else { None };
        store.save(decision)?;
        if let Some(run) = before {
            store.learn(&run, &mut asked_again)?;
        }
        Ok(())
    }

    /// Another model has answered.
    pub(crate) fn withdraw(&self, run: &str) -> Result<(), DatabaseError> {
        self.open()?.map_or(Ok(()), |store| store.withdraw(run))
    }

    /// Learns from the end of an answer.
    pub(crate) fn end(&self, run: &str, end: &AnswerOutcome) -> Result<(), DatabaseError> {
        let Some(store) = self.open()? else { return Ok(()) };
        store.learn(run, &mut |kept, record| ended(kept, record, end)).map(drop)
    }

    /// Saves a rating and learns from it. Returns whether the router chose the model.
    pub(crate) fn rate(&self, new: &NewRating<'_>) -> Result<bool, DatabaseError> {
        let Some(store) = self.open()? else { return Ok(false) };
        let learnt = store.rate(new, &mut |kept, record| rated(kept, record, new.rating))?;
        self.read_knowledge(store.as_ref())?;
        Ok(learnt)
    }

    /// Reads what was learnt, and from time to time how fast models are.
    pub(crate) fn read(&self) -> Result<(), DatabaseError> {
        if let Some(store) = self.find()? {
            self.read_knowledge(store.as_ref())?;
        }
        self.known().read = Some(Instant::now());
        let due = self.known().speeds_read.is_none_or(|read| read.elapsed() >= SPEEDS_FRESH);
        if due {
            let speeds = self.measure()?;
            let mut known = self.known();
            known.speeds = speeds;
            known.speeds_read = Some(Instant::now());
        }
        Ok(())
    }

    /// Reads what was just learnt.
    pub(crate) fn renew(&self) -> Result<(), DatabaseError> {
        self.open()?.map_or(Ok(()), |store| self.read_knowledge(store.as_ref()))
    }

    fn read_knowledge(&self, store: &dyn RoutingStore) -> Result<(), DatabaseError> {
        let knowledge = store.knowledge()?;
        let mut known = self.known();
        known.knowledge = knowledge;
        known.read = Some(Instant::now());
        Ok(())
    }

    fn measure(&self) -> Result<HashMap<String, HashMap<String, f64>>, DatabaseError> {
        let mut speeds: HashMap<String, HashMap<String, f64>> = HashMap::new();
        let Some(measurements) = &self.measurements else { return Ok(speeds) };
        for speed in measurements.speeds(SPEED_DAYS, MOST_SPEEDS)? {
            let MeasuredSpeed { engine, model, tokens_per_second } = speed;
            speeds.entry(engine).or_default().insert(model, tokens_per_second);
        }
        Ok(speeds)
    }

    /// The store, created where there is none; `None` where nothing is stored.
    fn open(&self) -> Result<Option<Arc<dyn RoutingStore>>, DatabaseError> {
        self.database.as_ref().map(store::open).transpose()
    }

    /// The store where there is one. Creates nothing.
    pub(crate) fn find(&self) -> Result<Option<Arc<dyn RoutingStore>>, DatabaseError> {
        self.database.as_ref().map_or(Ok(None), store::find)
    }

    pub(crate) fn is_nowhere(&self) -> bool {
        self.database.is_none()
    }

    pub(crate) fn is_stale(&self) -> bool {
        let mut known = self.known();
        let stale = known.read.is_none_or(|read| read.elapsed() >= FRESH);
        if stale {
            // One caller reads again; the others need not.
            known.read = Some(Instant::now());
        }
        stale
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! The book of choices: what was chosen, what came of it, what was learnt, and what people say of answers.
//!
//! It lives in the database, where every process of this home finds it, and is read again every few seconds. Where there is no
//! database, what is learnt is forgotten.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use hob_core::engine::CLOUD;
use hob_core::{RequestSource, Usage};
use hob_db::{DatabaseError, LazyDatabase};
use hob_routing::grpo::{Lesson, learn};
use hob_routing::reward::{self, AnswerOutcome, RATING_STRENGTH};
use hob_routing::{ClassRecord, Knowledge, QuestionClass, Rating, RoutingDecision};
use hob_store::Routing;
use hob_store::routing::{Kept, NewRating};
use thiserror::Error;
use tokio::sync::OnceCell;

use super::feedback::{Answers, RatableAnswer};
use super::measurements::{MeasuredSpeed, Measurements};
use super::writer::{Entry, Writer};

/// What is known is read again after this long: other processes learn too.
const FRESH: Duration = Duration::from_secs(10);

/// The longest that the first question waits for what is known.
const FIRST_LOOK: Duration = Duration::from_secs(1);

/// Speeds are sums over days, and change slowly.
const SPEEDS_FRESH: Duration = Duration::from_secs(60);

/// Days whose calls tell how fast a model is.
const SPEED_DAYS: u32 = 7;

/// Models whose speed is known, at most.
const MOST_SPEEDS: u32 = 500;

/// Who asks the same within this time was not content.
const ASKED_AGAIN_WITHIN: Duration = Duration::from_secs(600);

/// The longest wait for what is still to be written.
const LAST_ENTRIES: Duration = Duration::from_secs(5);

/// The book of this home. Cheap to clone; all clones are the same. The default one is kept nowhere.
#[derive(Clone, Default)]
pub struct RouterBook {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    shelf: Arc<Shelf>,
    /// Started when there is something to write.
    writer: OnceLock<Option<Writer>>,
    first_read: OnceCell<()>,
}

/// What somebody said, and of which answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rated {
    pub answer: RatableAnswer,
    pub rating: Rating,
    /// Whether the router learnt from it: it chose the model.
    pub learnt: bool,
}

/// Why something cannot be rated.
#[derive(Debug, Error)]
pub enum RateError {
    #[error("there is no answer '{run}' of the last days")]
    NoSuchAnswer { run: String },
    #[error("there is no answer yet that could be rated")]
    NoAnswer,
    #[error(transparent)]
    Store(#[from] DatabaseError),
    /// The program ends.
    #[error("the rating was not written")]
    Stopped,
}

impl RouterBook {
    /// The book in a database, which is created when there is something to write. `measurements` is `None` where nothing is
    /// measured.
    pub fn new(database: impl Into<LazyDatabase>, measurements: Option<Arc<dyn Measurements>>) -> Self {
        let shelf = Shelf { database: Some(database.into()), measurements, known: Mutex::default() };
        RouterBook { inner: Arc::new(Inner { shelf: Arc::new(shelf), ..Inner::default() }) }
    }

    /// What is kept, for reports; `None` where nothing ever was. Creates nothing. Blocks.
    pub fn find(&self) -> Result<Option<Routing>, DatabaseError> {
        self.inner.shelf.find()
    }

    /// Takes down what somebody says of an answer, `None` for the last one. Blocks.
    pub fn rate(&self, run: Option<&str>, rating: Rating) -> Result<Rated, RateError> {
        if let Some(Some(writer)) = self.inner.writer.get() {
            writer.flush(LAST_ENTRIES);
        }
        self.inner.shelf.rate(run, rating, SystemTime::now())
    }

    /// Writes what is still to be written.
    pub(crate) async fn close(self) {
        // A failure is the blocking pool's end, which comes only with the program's.
        let _ = tokio::task::spawn_blocking(move || {
            if let Some(Some(writer)) = self.inner.writer.get() {
                writer.flush(LAST_ENTRIES);
            }
        })
        .await;
    }

    /// Waits a moment for the first look into the book; later ones wait for nothing.
    pub(super) async fn ready(&self) {
        let first = self.inner.first_read.get_or_init(|| async {
            let shelf = Arc::clone(&self.inner.shelf);
            let reading = tokio::task::spawn_blocking(move || shelf.read());
            // What comes too late for this question is there for the next.
            if let Ok(Ok(Err(error))) = tokio::time::timeout(FIRST_LOOK, reading).await {
                tracing::warn!(%error, "what was learnt of models cannot be read");
            }
        });
        first.await;
        if self.inner.shelf.is_stale() {
            self.send(Entry::Read);
        }
    }

    /// What is known of a class.
    pub(super) fn class(&self, class: QuestionClass) -> ClassRecord {
        self.inner.shelf.known().knowledge.get(&class).cloned().unwrap_or_default()
    }

    /// Tokens that a model writes in a second, where that was measured.
    pub(super) fn speed(&self, engine: &str, model: &str) -> Option<f64> {
        self.inner.shelf.known().speeds.get(engine)?.get(model).copied()
    }

    /// What an answer cost in dollars; `None` where that is not known. Only the cloud asks for money.
    pub(super) fn price(&self, engine: &str, model: &str, usage: Option<Usage>) -> Option<f64> {
        if engine != CLOUD {
            return Some(0.0);
        }
        self.inner.shelf.measurements.as_ref()?.price(model, usage?)
    }

    pub(super) fn decided(&self, decision: RoutingDecision) {
        self.send(Entry::Decided(Box::new(decision)));
    }

    pub(super) fn ended(&self, run: Arc<str>, end: AnswerOutcome) {
        self.send(Entry::Ended { run, end });
    }

    pub(super) fn withdrawn(&self, run: Arc<str>) {
        self.send(Entry::Withdrawn(run));
    }

    fn send(&self, entry: Entry) {
        if self.inner.shelf.is_nowhere() {
            return;
        }
        let start = || match Writer::start(Arc::clone(&self.inner.shelf)) {
            Ok(writer) => Some(writer),
            Err(error) => {
                tracing::warn!(%error, "what models are worth is not written down");
                None
            }
        };
        if let Some(writer) = self.inner.writer.get_or_init(start) {
            writer.send(entry);
        }
    }
}

/// The book itself, and what was last read in it. Everything that writes or reads it blocks.
#[derive(Default)]
pub(super) struct Shelf {
    /// `None` where nothing is kept.
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
    /// Keeps a choice. If it is for a question that was just answered, that answer was not good enough.
    pub(super) fn keep(&self, decision: &RoutingDecision) -> Result<(), DatabaseError> {
        let Some(routing) = self.open()? else { return Ok(()) };
        let since = decision.decided.checked_sub(ASKED_AGAIN_WITHIN).unwrap_or(SystemTime::UNIX_EPOCH);
        let asked_by_people = !matches!(decision.source, RequestSource::Scheduler | RequestSource::Bench);
        let before = if asked_by_people { routing.asked_before(decision, since)? } else { None };
        routing.keep(decision)?;
        if let Some(run) = before {
            routing.learn(&run, asked_again)?;
        }
        Ok(())
    }

    /// Another model has answered.
    pub(super) fn withdraw(&self, run: &str) -> Result<(), DatabaseError> {
        self.open()?.map_or(Ok(()), |routing| routing.withdraw(run))
    }

    /// Learns from the end of an answer.
    pub(super) fn end(&self, run: &str, end: &AnswerOutcome) -> Result<(), DatabaseError> {
        let Some(routing) = self.open()? else { return Ok(()) };
        routing.learn(run, |kept, record| ended(kept, record, end)).map(drop)
    }

    fn rate(&self, run: Option<&str>, rating: Rating, now: SystemTime) -> Result<Rated, RateError> {
        let nothing = || match run {
            Some(run) => RateError::NoSuchAnswer { run: run.chars().take(80).collect() },
            None => RateError::NoAnswer,
        };
        let Some(routing) = self.find()? else { return Err(nothing()) };
        if let Some(measurements) = &self.measurements {
            measurements.settle();
        }
        let answers = Answers { routing: &routing, measurements: self.measurements.as_deref() };
        let answer = match run {
            Some(run) => answers.find(run, now)?,
            None => answers.last(now)?,
        };
        let answer = answer.ok_or_else(nothing)?;
        let RatableAnswer { run, engine, model, .. } = &answer;
        let new = NewRating { run, engine, model, rating, rated: now };
        let learnt = routing.rate(&new, |kept, record| rated(kept, record, rating))?;
        self.read_knowledge(&routing)?;
        Ok(Rated { answer, rating, learnt })
    }

    /// Reads what was learnt, and from time to time how fast models are.
    pub(super) fn read(&self) -> Result<(), DatabaseError> {
        if let Some(routing) = self.find()? {
            self.read_knowledge(&routing)?;
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
    pub(super) fn renew(&self) -> Result<(), DatabaseError> {
        self.open()?.map_or(Ok(()), |routing| self.read_knowledge(&routing))
    }

    fn read_knowledge(&self, routing: &Routing) -> Result<(), DatabaseError> {
        let knowledge = routing.knowledge()?;
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

    /// The book, made where there is none yet; `None` where it is kept nowhere.
    fn open(&self) -> Result<Option<Routing>, DatabaseError> {
        self.database.as_ref().map(|database| Ok(Routing::new(database.open()?))).transpose()
    }

    /// The book where there is one.
    fn find(&self) -> Result<Option<Routing>, DatabaseError> {
        let Some(database) = &self.database else { return Ok(None) };
        Ok(database.find()?.map(Routing::new))
    }

    fn is_nowhere(&self) -> bool {
        self.database.is_none()
    }

    fn is_stale(&self) -> bool {
        let mut known = self.known();
        let stale = known.read.is_none_or(|read| read.elapsed() >= FRESH);
        if stale {
            // Whoever comes next need not ask for the same.
            known.read = Some(Instant::now());
        }
        stale
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An answer has ended. That counts once, and its reward is not what somebody said of it before.
fn ended(kept: &mut Kept, record: &mut ClassRecord, end: &AnswerOutcome) {
    if kept.implicit.is_some() {
        return;
    }
    let model = kept.decision.model.clone();
    let reward = reward::implicit(&model, end, record);
    kept.answered = matches!(end, AnswerOutcome::Answered(_));
    kept.implicit = Some(reward);
    if kept.reward.is_none() {
        teach(kept, record, reward, Weight::Usual);
    }
    if let AnswerOutcome::Answered(effort) = end {
        reward::note_effort(record.models.entry(model).or_default(), effort);
    }
}

/// The question was asked again. That counts once, and not against what a person said of the answer.
fn asked_again(kept: &mut Kept, record: &mut ClassRecord) {
    if let Some(reward) = kept.reward
        && !kept.retried
    {
        kept.retried = true;
        kept.implicit = kept.implicit.map(reward::asked_again);
        if !kept.rated {
            teach(kept, record, reward::asked_again(reward), Weight::Usual);
        }
    }
}

/// Somebody has spoken, in the place of what was said before.
fn rated(kept: &mut Kept, record: &mut ClassRecord, rating: Rating) {
    let reward = reward::rated(kept.implicit, rating);
    teach(kept, record, reward, Weight::Said);
}

/// How much a lesson counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Weight {
    Usual,
    /// A person said it.
    Said,
}

fn teach(kept: &mut Kept, record: &mut ClassRecord, reward: f64, weight: Weight) {
    let RoutingDecision { model, rivals, probability, .. } = &kept.decision;
    let (probability, strength) = match weight {
        Weight::Usual => (*probability, 1.0),
        Weight::Said => (None, RATING_STRENGTH),
    };
    learn(record, &Lesson { model, rivals, probability, reward, earlier: kept.reward, strength });
    kept.reward = Some(reward);
}

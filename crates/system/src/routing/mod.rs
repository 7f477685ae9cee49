//! Chooses the model for requests that leave it to us, and learns from what came of it.
//!
//! The policies are pure; here are the models, the random numbers and the book that they need, and [`Measurements`] says how fast models
//! are and what they cost. No answer waits for the book: choices and their ends go to its writer, and a policy works with what
//! was read last. Knows no configuration file and nothing of how calls are recorded.

mod book;
mod feedback;
mod measurements;
mod ticket;
mod writer;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use hob_core::engine::CLOUD;
use hob_core::token_estimate::prompt_tokens;
use hob_core::{Caller, GenerateRequest, ListedModel, ModelReason, NoSuitableModel};
use hob_routing::{
    Grpo, Heuristic, ModelCandidate, ModelChoice, QuestionClass, RandomDraw, RouterPolicy, RoutingDecision,
    choose, model_candidate, question_hash, question_profile,
};

pub use book::{RateError, Rated, RouterBook};
#[cfg(test)]
pub(crate) use feedback::Answers;
pub use feedback::RatableAnswer;
pub use hob_routing::grpo::{ENOUGH_TRIES, probabilities};
pub use measurements::{MeasuredSpeed, Measurements};
pub(crate) use ticket::Ticket;

/// Models that are chosen from. A provider may list hundreds, and nobody can get to know them all.
const MOST_CANDIDATES: usize = 64;

/// How a model is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyName {
    /// By rules.
    Heuristic,
    /// By what was learnt.
    Grpo,
}

impl PolicyName {
    pub fn as_str(self) -> &'static str {
        match self {
            PolicyName::Heuristic => "heuristic",
            PolicyName::Grpo => "grpo",
        }
    }
}

impl fmt::Display for PolicyName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// Draws a random number.
pub type DrawFn = Arc<dyn Fn() -> RandomDraw + Send + Sync>;

/// Chooses.
pub struct Router {
    policy: PolicyName,
    book: RouterBook,
    under_way: UnderWay,
    draw_fn: DrawFn,
}

/// A model that was chosen.
pub(crate) struct Routed {
    /// The key of the engine that has it.
    pub(crate) engine: String,
    pub(crate) model: String,
    pub(crate) reason: ModelReason,
    pub(crate) ticket: Ticket,
}

impl Default for Router {
    /// Follows the rules, and keeps nothing.
    fn default() -> Self {
        Router::new(PolicyName::Heuristic, RouterBook::default())
    }
}

impl Router {
    pub fn new(policy: PolicyName, book: RouterBook) -> Self {
        let draw_fn = Arc::new(|| RandomDraw::new(fastrand::f64()));
        Router { policy, book, under_way: UnderWay::default(), draw_fn }
    }

    /// The same with other random numbers.
    pub fn drawing(self, draw_fn: DrawFn) -> Self {
        Router { draw_fn, ..self }
    }

    pub fn policy(&self) -> PolicyName {
        self.policy
    }

    pub fn book(&self) -> &RouterBook {
        &self.book
    }

    /// Chooses one of `models` for a request. `house` is the engine that is named where there is nothing to choose.
    pub(crate) async fn route(
        &self,
        request: &GenerateRequest,
        caller: &Caller,
        models: &[ListedModel],
        house: &str,
    ) -> Result<Routed, NoSuitableModel> {
        self.book.ready().await;
        let profile = question_profile(request, prompt_tokens(request));
        let candidates = self.candidates(models, house);
        let policy: Box<dyn RouterPolicy> = match self.policy {
            PolicyName::Heuristic => Box::new(Heuristic),
            PolicyName::Grpo => Box::new(Grpo {
                record: self.book.class(profile.class),
                under_way: self.under_way.of(profile.class),
            }),
        };
        let ModelChoice { model, reason, probability, rivals } =
            choose(policy.as_ref(), &profile, &candidates, (self.draw_fn)(), house)?;
        let engine = models.iter().find(|listed| listed.model.id == model);
        let engine = engine.map_or_else(|| house.to_owned(), |listed| listed.engine.clone());
        let decision = RoutingDecision {
            run: Arc::clone(&caller.run),
            decided: SystemTime::now(),
            source: caller.source,
            policy: policy.name().to_owned(),
            class: profile.class,
            engine: engine.clone(),
            model: model.clone(),
            rivals,
            probability,
            question: question_hash(request),
        };
        let at_work = self.under_way.begin(profile.class, &model);
        let ticket = Ticket::new(&decision, self.book.clone(), at_work);
        self.book.decided(decision);
        Ok(Routed { engine, model, reason, ticket })
    }

    /// What could answer, with what was measured of it. The cloud only where it is the engine of the house: whether it may stand in
    /// for another that is down is the fallback's affair, and no reason to send questions away while all is well.
    fn candidates(&self, models: &[ListedModel], house: &str) -> Vec<ModelCandidate> {
        let may_answer = |listed: &&ListedModel| listed.engine != CLOUD || house == CLOUD;
        let known = models.iter().filter(may_answer).filter_map(|ListedModel { engine, model }| {
            let speed = self.book.speed(engine, &model.id);
            Some(ModelCandidate { speed, ..model_candidate(model)? })
        });
        known.take(MOST_CANDIDATES).collect()
    }
}

/// How many questions models are at work on, by class.
#[derive(Clone, Default)]
pub(crate) struct UnderWay {
    counts: Arc<Mutex<Counts>>,
}

type Counts = HashMap<QuestionClass, BTreeMap<String, u64>>;

impl UnderWay {
    fn of(&self, class: QuestionClass) -> BTreeMap<String, u64> {
        self.counts().get(&class).cloned().unwrap_or_default()
    }

    fn begin(&self, class: QuestionClass, model: &str) -> AtWork {
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

#[cfg(test)]
#[path = "routing_tests.rs"]
mod tests;

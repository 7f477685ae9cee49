//! Chooses the model for a request that leaves it to Hob: brings models, speeds and random numbers to a policy, and records the choice.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use hob_core::engine::CLOUD;
use hob_core::token_estimate::prompt_tokens;
use hob_core::{Caller, GenerateRequest, ListedModel, ModelReason, NoSuitableModel};

use crate::choose::{ModelChoice, choose};
use crate::grpo::Grpo;
use crate::heuristic::Heuristic;
use crate::in_flight::UnderWay;
use crate::model_facts::model_candidate;
use crate::outcome::Ticket;
use crate::question_features::question_profile;
use crate::question_hash::question_hash;
use crate::records::RoutingDecision;
use crate::service::RouterBook;
use crate::types::{ModelCandidate, RandomDraw, RouterPolicy};

/// Models that are chosen from. A provider may list hundreds, too many to learn about each.
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
pub struct Routed {
    /// The key of the engine that has it.
    pub engine: String,
    pub model: String,
    pub reason: ModelReason,
    pub ticket: Ticket,
}

impl Default for Router {
    /// Follows the rules, and stores nothing.
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

    /// Chooses one of `models` for a request. An error names `house`, the default engine.
    pub async fn route(
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

    /// The models that could answer, with their measured speed. Those of the cloud only where it is the default engine: the fallback
    /// decides when the cloud replaces an engine that is down.
    fn candidates(&self, models: &[ListedModel], house: &str) -> Vec<ModelCandidate> {
        let may_answer = |listed: &&ListedModel| listed.engine != CLOUD || house == CLOUD;
        let known = models.iter().filter(may_answer).filter_map(|ListedModel { engine, model }| {
            let speed = self.book.speed(engine, &model.id);
            Some(ModelCandidate { speed, ..model_candidate(model)? })
        });
        known.take(MOST_CANDIDATES).collect()
    }
}

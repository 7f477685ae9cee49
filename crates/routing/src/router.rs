//! Chooses the model for a request: passes models, speeds and random numbers to a policy, and records the choice.

use std::sync::Arc;
use std::time::SystemTime;

use hob_core::token_estimate::prompt_tokens;
use hob_core::{Caller, GenerateRequest, ListedModel, ModelReason, NoSuitableModel};

use crate::choose::{ModelChoice, candidates, choose};
use crate::grpo::Grpo;
use crate::heuristic::Heuristic;
use crate::in_flight::InFlight;
use crate::outcome::OutcomeReporter;
use crate::question_features::question_profile;
use crate::question_hash::question_hash;
use crate::records::RoutingDecision;
use crate::service::RoutingService;
use crate::types::{RandomDraw, RouterPolicy};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyName {
    /// By rules.
    Heuristic,
    /// By learning.
    Grpo,
}

hob_core::named_variants! {
    PolicyName {
        Heuristic => "heuristic",
        Grpo => "grpo",
    }
}

pub type DrawFn = Arc<dyn Fn() -> RandomDraw + Send + Sync>;

pub struct Router {
    policy: PolicyName,
    service: RoutingService,
    in_flight: InFlight,
    draw_fn: DrawFn,
}

pub struct RoutedModel {
    /// The key of the engine that has it.
    pub engine: String,
    pub model: String,
    pub reason: ModelReason,
    /// Reports the outcome of the answer.
    pub reporter: OutcomeReporter,
}

impl Default for Router {
    /// The heuristic policy without storage.
    fn default() -> Self {
        Router::new(PolicyName::Heuristic, RoutingService::default())
    }
}

impl Router {
    pub fn new(policy: PolicyName, service: RoutingService) -> Self {
        let draw_fn = Arc::new(|| RandomDraw::new(fastrand::f64()));
        Router { policy, service, in_flight: InFlight::default(), draw_fn }
    }

    /// Uses other random numbers.
    pub fn with_draws(self, draw_fn: DrawFn) -> Self {
        Router { draw_fn, ..self }
    }

    pub fn policy(&self) -> PolicyName {
        self.policy
    }

    pub fn service(&self) -> &RoutingService {
        &self.service
    }

    /// Chooses one of `models` for a request. An error names `default_engine`.
    pub async fn route(
        &self,
        request: &GenerateRequest,
        caller: &Caller,
        models: &[ListedModel],
        default_engine: &str,
    ) -> Result<RoutedModel, NoSuitableModel> {
        self.service.ready().await;
        let profile = question_profile(request, prompt_tokens(request));
        let candidates =
            candidates(models, default_engine, |engine, model| self.service.speed(engine, model));
        let policy: Box<dyn RouterPolicy> = match self.policy {
            PolicyName::Heuristic => Box::new(Heuristic),
            PolicyName::Grpo => Box::new(Grpo {
                record: self.service.class_record(profile.class),
                in_flight: self.in_flight.by_model(profile.class),
            }),
        };
        let ModelChoice { model, reason, probability, candidates } =
            choose(policy.as_ref(), &profile, &candidates, (self.draw_fn)(), default_engine)?;
        let engine = models.iter().find(|listed| listed.model.id == model);
        let engine = engine.map_or_else(|| default_engine.to_owned(), |listed| listed.engine.clone());
        let decision = RoutingDecision {
            run: Arc::clone(&caller.run),
            decided: SystemTime::now(),
            source: caller.source,
            policy: policy.name().to_owned(),
            class: profile.class,
            engine: engine.clone(),
            model: model.clone(),
            candidates,
            probability,
            question: question_hash(request),
        };
        let guard = self.in_flight.begin(profile.class, &model);
        let reporter = OutcomeReporter::new(&decision, self.service.clone(), guard);
        self.service.record_decision(decision);
        Ok(RoutedModel { engine, model, reason, reporter })
    }
}

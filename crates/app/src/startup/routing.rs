//! The router according to the configuration, with measurements from the recorded calls.

use std::path::Path;
use std::sync::Arc;

use hob_config::{Config, RouterName};
use hob_routing::{PolicyName, Router, RoutingService};
use hob_telemetry::TelemetryService;

use crate::databases::hob_database;
use crate::feedback::FeedbackService;
use crate::recorded_calls::RecordedCalls;

/// Chooses the model for `auto`. Rules learn nothing, so no choice is stored if no call is recorded.
pub(crate) fn open_router(config: &Config, calls: &RecordedCalls) -> Router {
    let policy = policy(config.intelligence.router);
    let service = match config.telemetry.enabled || policy == PolicyName::Grpo {
        true => routing_service(calls.clone()),
        false => RoutingService::default(),
    };
    Router::new(policy, service)
}

/// The choices in `home`, and what was learned from them.
pub fn open_routing_service(home: &Path, record: TelemetryService) -> RoutingService {
    routing_service(RecordedCalls::new(hob_database(home), record))
}

/// Rates the answers in `home`.
pub fn open_feedback(home: &Path, record: TelemetryService) -> FeedbackService {
    let calls = RecordedCalls::new(hob_database(home), record);
    FeedbackService::new(routing_service(calls.clone()), Some(calls))
}

fn routing_service(calls: RecordedCalls) -> RoutingService {
    RoutingService::new(calls.database().clone(), Some(Arc::new(calls)))
}

fn policy(key: RouterName) -> PolicyName {
    match key {
        RouterName::Heuristic => PolicyName::Heuristic,
        RouterName::Grpo => PolicyName::Grpo,
    }
}

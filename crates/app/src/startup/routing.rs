//! The router according to the configuration, with measurements from the recorded calls.

use std::sync::Arc;

use hob_config::{Config, RouterName};
use hob_db::Storage;
use hob_routing::{PolicyName, Router, RoutingService};
use hob_telemetry::TelemetryService;

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

/// The choices in a database, and what was learned from them.
pub fn open_routing_service(storage: impl Into<Storage>, record: TelemetryService) -> RoutingService {
    routing_service(RecordedCalls::new(storage, record))
}

/// Rates the answers in a database.
pub fn open_feedback(storage: impl Into<Storage>, record: TelemetryService) -> FeedbackService {
    let calls = RecordedCalls::new(storage, record);
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

//! The router according to the configuration, with measurements from the recorded calls.

use std::sync::Arc;

use hob_config::{Config, RouterName};
use hob_db::Storage;
use hob_routing::{FeedbackService, PolicyName, Router, RoutingService};
use hob_telemetry::TelemetryService;

use crate::recorded_calls::RecordedCalls;

/// Chooses the model for `auto`. Rules learn nothing, so no choice is stored if no call is recorded.
pub(crate) fn open_router(config: &Config, calls: &RecordedCalls) -> Router {
    let policy = match config.intelligence.router {
        RouterName::Heuristic => PolicyName::Heuristic,
        RouterName::Grpo => PolicyName::Grpo,
    };
    let service = match config.telemetry.enabled || policy == PolicyName::Grpo {
        true => routing_service(calls.clone()),
        false => RoutingService::default(),
    };
    Router::new(policy, service)
}

/// The choices in a database, and what was learned from them.
pub fn open_routing_service(storage: impl Into<Storage>, record: TelemetryService) -> RoutingService {
    routing_service(RecordedCalls { record, database: storage.into() })
}

/// Rates the answers in a database.
pub fn open_feedback(storage: impl Into<Storage>, record: TelemetryService) -> FeedbackService {
    let calls = RecordedCalls { record, database: storage.into() };
    FeedbackService::new(routing_service(calls.clone()), Some(Arc::new(calls)))
}

fn routing_service(calls: RecordedCalls) -> RoutingService {
    RoutingService::new(calls.database.clone(), Some(Arc::new(calls)))
}

//! What a host says of itself before requests are sent to it, and which of several errors is reported.

use std::sync::Arc;

use hob_core::{Engine, EngineError, ModelInfo};
use tokio::time::{Instant, timeout};

use super::circuit_breaker::Failure;
use super::failure_class::{FailureClass, RequestKind, RetryRule, classify};
use super::host_table::HostSlot;
use crate::wire::client::PROBE_TIMEOUT;

/// Lists the models of a host that has not answered yet, so that no request is lost on it. Whether it has the model.
pub(super) async fn check_host(slot: &mut HostSlot, model: &str) -> Result<bool, EngineError> {
    match list(slot).await {
        Ok(models) => Ok(slot.set_models(&models, model)),
        Err(error) if only_hides_models(&error) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Whether the host works and only does not list its models. Such a host can be used.
fn only_hides_models(error: &EngineError) -> bool {
    classify(error, RequestKind::List) == FailureClass { failure: Failure::None, retry: RetryRule::Never }
}

/// Whether a host answers. One that does not list its models fails its health check, and may answer requests: the configuration says
/// that it is this engine.
pub(super) async fn answers(host: &dyn Engine) -> bool {
    if host.health().await {
        return true;
    }
    let listed = timeout(PROBE_TIMEOUT, host.list_models()).await;
    matches!(listed, Ok(Err(error)) if only_hides_models(&error))
}

/// A host's models, within the time limit of a probe. Reports the result to its breaker.
pub(super) async fn list(slot: &mut HostSlot) -> Result<Vec<ModelInfo>, EngineError> {
    let host = Arc::clone(slot.host());
    let too_slow = || EngineError::Timeout { engine: host.key().to_owned(), after: PROBE_TIMEOUT };
    let listed = timeout(PROBE_TIMEOUT, host.list_models()).await.unwrap_or_else(|_| Err(too_slow()));
    match &listed {
        Ok(_) => slot.responded(),
        Err(error) if only_hides_models(error) => {
            slot.responded();
            slot.hide_models();
        }
        Err(error) => slot.failed(classify(error, RequestKind::List).failure, Instant::now()),
    }
    listed
}

/// The more informative of two errors, or the later of equals. An error from a host says more than an unreachable
/// host, and an error after which the request may have been processed is never hidden.
pub(super) fn more_informative(earlier: Option<EngineError>, later: EngineError) -> EngineError {
    let weight = |error: &EngineError| match error {
        EngineError::Unreachable { .. } => 0,
        EngineError::ModelNotFound { .. } => 1,
        // This part is the same for every kind of request.
        error if classify(error, RequestKind::Stream).retry == RetryRule::Once => 3,
        _ => 2,
    };
    match earlier {
        Some(earlier) if weight(&earlier) > weight(&later) => earlier,
        _ => later,
    }
}

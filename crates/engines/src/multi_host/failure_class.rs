//! What an engine's error says about its host, and whether another host may be tried. Pure. Every kind of error has a
//! row.

use hob_core::EngineError;

use super::circuit_breaker::Failure;

/// Whether the request may be sent to another host, as long as no part of an answer has reached the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RetryRule {
    /// Another host would give the same answer, or the first may still work on the request.
    Never,
    /// The host did not process the request: it did not receive it, or rejected it.
    Always,
    /// The host received the request, and its work is lost. One other host may be tried if a second request costs
    /// nothing but time. With more tries, a request that crashes hosts would crash all of them.
    Once,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FailureClass {
    pub(super) failure: Failure,
    pub(super) retry: RetryRule,
}

/// What the host was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestKind {
    /// A complete answer. Nothing arrives before all of it is ready.
    Whole,
    /// A streamed answer.
    Stream,
    /// Its list of models.
    List,
}

pub(super) fn classify(error: &EngineError, asked: RequestKind) -> FailureClass {
    let (failure, retry) = match error {
        EngineError::Unreachable { .. } => (Failure::Hard, RetryRule::Always),
        // The host may still work on a long answer, and another host would not be faster. During a complete answer a
        // host sends nothing, so silence says nothing about its health; `unless_hung` finds hosts that hang.
        EngineError::Timeout { .. } if asked == RequestKind::Whole => {
            (Failure::Inconclusive, RetryRule::Never)
        }
        EngineError::Timeout { .. } => (Failure::Soft, RetryRule::Never),
        EngineError::Interrupted { .. } | EngineError::Malformed { .. } => (Failure::Soft, RetryRule::Once),
        EngineError::Refused { status, .. } => match status {
            // The host is busy.
            429 => (Failure::None, RetryRule::Always),
            // The host is loading a model, overloaded, or shutting down.
            503 => (Failure::Soft, RetryRule::Always),
            500.. => (Failure::Soft, RetryRule::Once),
            _ => (Failure::None, RetryRule::Never),
        },
        EngineError::ModelNotFound { .. } => (Failure::None, RetryRule::Always),
        EngineError::Unsupported { .. } | EngineError::NotConfigured { .. } | EngineError::Limit(_) => {
            (Failure::None, RetryRule::Never)
        }
    };
    FailureClass { failure, retry }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn refused(status: u16) -> EngineError {
        EngineError::Refused {
            engine: "vllm".into(),
            status,
            message: "no".into(),
            code: None,
            param: None,
            retry_after: None,
        }
    }

    #[test]
    fn every_failure_is_judged() {
        let engine = || "vllm".to_owned();
        let reason = || "cable".to_owned();
        for (error, failure, retry) in [
            (
                EngineError::Unreachable {
                    engine: engine(),
                    address: String::new(),
                    reason: reason().into(),
                },
                Failure::Hard,
                RetryRule::Always,
            ),
            (
                EngineError::Timeout { engine: engine(), after: Duration::from_secs(120) },
                Failure::Soft,
                RetryRule::Never,
            ),
            (EngineError::Interrupted { engine: engine(), reason: reason() }, Failure::Soft, RetryRule::Once),
            (EngineError::Malformed { engine: engine(), reason: reason() }, Failure::Soft, RetryRule::Once),
            (refused(500), Failure::Soft, RetryRule::Once),
            (refused(502), Failure::Soft, RetryRule::Once),
            (refused(503), Failure::Soft, RetryRule::Always),
            (refused(429), Failure::None, RetryRule::Always),
            (refused(400), Failure::None, RetryRule::Never),
            (refused(401), Failure::None, RetryRule::Never),
            (refused(404), Failure::None, RetryRule::Never),
            (refused(307), Failure::None, RetryRule::Never),
            (
                EngineError::ModelNotFound { engine: engine(), model: "m".into(), available: Vec::new() },
                Failure::None,
                RetryRule::Always,
            ),
            (
                EngineError::Unsupported { engine: engine(), field: "n".into(), hint: None },
                Failure::None,
                RetryRule::Never,
            ),
            (
                EngineError::NotConfigured { engine: engine(), reason: reason() },
                Failure::None,
                RetryRule::Never,
            ),
        ] {
            assert_eq!(classify(&error, RequestKind::Stream), FailureClass { failure, retry }, "{error}");
        }
    }

    #[test]
    fn a_slow_complete_answer_is_not_a_failure() {
        let timeout = EngineError::Timeout { engine: "vllm".into(), after: Duration::from_secs(120) };
        assert_eq!(
            classify(&timeout, RequestKind::Whole),
            FailureClass { failure: Failure::Inconclusive, retry: RetryRule::Never }
        );
        assert_eq!(
            classify(&timeout, RequestKind::List),
            FailureClass { failure: Failure::Soft, retry: RetryRule::Never }
        );
    }
}

//! What an engine's failure says of its host, and whether the question may be asked elsewhere. Pure, and complete: every kind
//! of error has its row.

use hob_core::EngineError;

use super::circuit_breaker::Failure;

/// Whether another host may be asked the same, as long as nothing of an answer reached the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RetryRule {
    /// The answer would be the same, or the question may still be worked on.
    Never,
    /// The host did nothing with the question: it never got it, or turned it away.
    Always,
    /// The host had the question, and what it made of it is lost. One other may be asked where asking costs nothing but
    /// time; more would let a question that breaks hosts break them all.
    Once,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FailureClass {
    pub(super) failure: Failure,
    pub(super) retry: RetryRule,
}

/// What was asked of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestKind {
    /// An answer in one piece, of which nothing comes before all of it is there.
    Whole,
    /// An answer as it is made.
    Stream,
    /// Its models, which it has at hand.
    List,
}

pub(super) fn classify(error: &EngineError, asked: RequestKind) -> FailureClass {
    let (failure, retry) = match error {
        EngineError::Unreachable { .. } => (Failure::Hard, RetryRule::Always),
        // It may be at work on a long answer, which nobody else would give sooner. A host is silent for as long as a whole
        // answer takes, so that silence says nothing of its health; `unless_hung` finds those that hang.
        EngineError::Timeout { .. } if asked == RequestKind::Whole => {
            (Failure::Inconclusive, RetryRule::Never)
        }
        EngineError::Timeout { .. } => (Failure::Soft, RetryRule::Never),
        EngineError::Interrupted { .. } | EngineError::Malformed { .. } => (Failure::Soft, RetryRule::Once),
        EngineError::Refused { status, .. } => match status {
            // It has enough to do.
            429 => (Failure::None, RetryRule::Always),
            // It is loading, full, or going down.
            503 => (Failure::Soft, RetryRule::Always),
            500.. => (Failure::Soft, RetryRule::Once),
            _ => (Failure::None, RetryRule::Never),
        },
        EngineError::ModelNotFound { .. } => (Failure::None, RetryRule::Always),
        EngineError::Unsupported { .. } | EngineError::NotConfigured { .. } => {
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
                EngineError::Unreachable { engine: engine(), address: String::new(), reason: reason() },
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
    fn silence_is_no_blow_while_a_whole_answer_is_made() {
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

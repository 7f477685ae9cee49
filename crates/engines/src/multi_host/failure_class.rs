//! What an engine's failure says of its host, and whether the question may be asked elsewhere. Pure, and complete: every kind
//! of error has its row.

use hob_core::EngineError;

use super::circuit_breaker::Harm;

/// Whether another host may be asked the same, as long as nothing of an answer reached the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    /// The answer would be the same, or the question may still be worked on.
    No,
    /// The host did nothing with the question: it never got it, or turned it away.
    Freely,
    /// The host had the question, and what it made of it is lost. One other may be asked where asking costs nothing but
    /// time; more would let a question that breaks hosts break them all.
    Once,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) harm: Harm,
    pub(super) again: Again,
}

/// What was asked of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// An answer in one piece, of which nothing comes before all of it is there.
    Whole,
    /// An answer as it is made.
    Stream,
    /// Its models, which it has at hand.
    List,
}

pub(super) fn verdict(error: &EngineError, asked: Asked) -> Verdict {
    let (harm, again) = match error {
        EngineError::Unreachable { .. } => (Harm::Gone, Again::Freely),
        // It may be at work on a long answer, which nobody else would give sooner. A host is silent for as long as a whole
        // answer takes, so that silence says nothing of its health; `unless_hung` finds those that hang.
        EngineError::Timeout { .. } if asked == Asked::Whole => (Harm::Unknown, Again::No),
        EngineError::Timeout { .. } => (Harm::Blow, Again::No),
        EngineError::Interrupted { .. } | EngineError::Malformed { .. } => (Harm::Blow, Again::Once),
        EngineError::Refused { status, .. } => match status {
            // It has enough to do.
            429 => (Harm::None, Again::Freely),
            // It is loading, full, or going down.
            503 => (Harm::Blow, Again::Freely),
            500.. => (Harm::Blow, Again::Once),
            _ => (Harm::None, Again::No),
        },
        EngineError::ModelNotFound { .. } => (Harm::None, Again::Freely),
        EngineError::Unsupported { .. } | EngineError::NotConfigured { .. } => (Harm::None, Again::No),
    };
    Verdict { harm, again }
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
        for (error, harm, again) in [
            (
                EngineError::Unreachable { engine: engine(), address: String::new(), reason: reason() },
                Harm::Gone,
                Again::Freely,
            ),
            (
                EngineError::Timeout { engine: engine(), after: Duration::from_secs(120) },
                Harm::Blow,
                Again::No,
            ),
            (EngineError::Interrupted { engine: engine(), reason: reason() }, Harm::Blow, Again::Once),
            (EngineError::Malformed { engine: engine(), reason: reason() }, Harm::Blow, Again::Once),
            (refused(500), Harm::Blow, Again::Once),
            (refused(502), Harm::Blow, Again::Once),
            (refused(503), Harm::Blow, Again::Freely),
            (refused(429), Harm::None, Again::Freely),
            (refused(400), Harm::None, Again::No),
            (refused(401), Harm::None, Again::No),
            (refused(404), Harm::None, Again::No),
            (refused(307), Harm::None, Again::No),
            (
                EngineError::ModelNotFound { engine: engine(), model: "m".into(), available: Vec::new() },
                Harm::None,
                Again::Freely,
            ),
            (
                EngineError::Unsupported { engine: engine(), field: "n".into(), hint: None },
                Harm::None,
                Again::No,
            ),
            (EngineError::NotConfigured { engine: engine(), reason: reason() }, Harm::None, Again::No),
        ] {
            assert_eq!(verdict(&error, Asked::Stream), Verdict { harm, again }, "{error}");
        }
    }

    #[test]
    fn silence_is_no_blow_while_a_whole_answer_is_made() {
        let timeout = EngineError::Timeout { engine: "vllm".into(), after: Duration::from_secs(120) };
        assert_eq!(verdict(&timeout, Asked::Whole), Verdict { harm: Harm::Unknown, again: Again::No });
        assert_eq!(verdict(&timeout, Asked::List), Verdict { harm: Harm::Blow, again: Again::No });
    }
}

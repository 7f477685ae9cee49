//! The target of one request: the engine that answers, the fallback model that may replace it, and what the answer reports about both.

use std::sync::Arc;

use hob_core::engine::CLOUD;
use hob_core::{AnswerWarning, CallerRights, Engine, EngineError, ModelReason};

use crate::fallback::{Fallback, FallbackEngine, FallbackModel, FallbackSwitch, WrapEngine};
use crate::pool::EnginePool;

/// The engine of a request.
pub struct RequestTarget {
    engine: Arc<dyn Engine>,
    reason: Option<ModelReason>,
    warning: Option<AnswerWarning>,
    /// Hints of the caller that this engine cannot follow.
    ignored: Vec<AnswerWarning>,
    /// The fallback that may still answer; `None` if there is none.
    pending: Option<PendingFallback>,
}

/// The fallback of the engine that is asked first.
struct PendingFallback {
    fallback: Arc<Fallback>,
    pool: Arc<EnginePool>,
    /// What the caller may use.
    rights: CallerRights,
    switch: Arc<FallbackSwitch>,
}

/// What the answer reports.
pub struct AnswerNotes {
    /// The key of the engine that answered.
    pub engine: String,
    /// The model that answered, if it is not the one that was requested.
    pub model: Option<String>,
    pub reason: Option<ModelReason>,
    /// That another engine or model answers than the caller expects.
    pub warning: Option<AnswerWarning>,
    /// Hints of the caller that have no effect.
    pub ignored: Vec<AnswerWarning>,
}

impl RequestTarget {
    /// One engine, without a fallback.
    pub fn to(engine: Arc<dyn Engine>, reason: Option<ModelReason>) -> Self {
        RequestTarget { engine, reason, warning: None, ignored: Vec::new(), pending: None }
    }

    /// A fallback model from the start.
    pub fn to_fallback(fallback: FallbackModel) -> Self {
        let FallbackModel { model: _, engine, reason, warning } = fallback;
        RequestTarget { warning: Some(warning), ..RequestTarget::to(engine, Some(reason)) }
    }

    /// The same with hints that have no effect.
    pub fn ignoring(self, ignored: Vec<AnswerWarning>) -> Self {
        RequestTarget { ignored, ..self }
    }

    /// The same with a fallback.
    pub fn with_fallback(
        self,
        fallback: &Arc<Fallback>,
        pool: &Arc<EnginePool>,
        rights: CallerRights,
    ) -> Self {
        let (fallback, pool) = (Arc::clone(fallback), Arc::clone(pool));
        RequestTarget {
            pending: Some(PendingFallback { fallback, pool, rights, switch: Arc::default() }),
            ..self
        }
    }

    /// The same, if the cloud was selected only because no other engine answered at the start.
    pub fn with_cloud_reason(self, reason: Option<&ModelReason>) -> Self {
        match reason {
            Some(reason) if self.engine.key() == CLOUD => RequestTarget {
                warning: self.warning.or(Some(AnswerWarning::CloudFallback)),
                reason: Some(reason.clone().after(self.reason)),
                ..self
            },
            _ => self,
        }
    }

    /// The same, if the cloud is asked because a configured engine that may have the model failed.
    pub fn with_cloud_fallback(self, error: &EngineError) -> Self {
        let reason = ModelReason::new(format!("the cloud answers: {error}"));
        RequestTarget {
            warning: Some(AnswerWarning::CloudFallback),
            reason: Some(reason.after(self.reason)),
            ..self
        }
    }

    /// The same, if the caller's name for the model is an alias.
    pub fn after_alias(self, alias: Option<ModelReason>) -> Self {
        let reason = match (alias, self.reason) {
            (alias, None) => alias,
            (alias, Some(reason)) => Some(reason.after(alias)),
        };
        RequestTarget { reason, ..self }
    }

    /// The key of the engine that is asked first.
    pub fn engine(&self) -> &str {
        self.engine.key()
    }

    /// The engine to ask. `wrap` wraps each engine that answers, for example to record its calls.
    pub fn wrapped(
        &self,
        wrap: impl Fn(Arc<dyn Engine>) -> Arc<dyn Engine> + Send + Sync + 'static,
    ) -> Arc<dyn Engine> {
        let first = wrap(Arc::clone(&self.engine));
        let Some(PendingFallback { fallback, pool, rights, switch }) = &self.pending else { return first };
        let wrap: WrapEngine = Arc::new(wrap);
        Arc::new(FallbackEngine {
            first,
            wrap,
            fallback: Arc::clone(fallback),
            pool: Arc::clone(pool),
            rights: rights.clone(),
            switch: Arc::clone(switch),
        })
    }

    /// The fallback model, if it answers.
    pub fn fallback_in_use(&self) -> Option<&FallbackModel> {
        self.pending.as_ref().and_then(|pending| pending.switch.model())
    }

    /// What the answer reports. After this no fallback may answer, because the report has been made.
    pub fn into_notes(self) -> AnswerNotes {
        if let Some(pending) = &self.pending {
            pending.switch.close();
        }
        let (engine, model, reason, warning) = match self.fallback_in_use() {
            None => (self.engine.key().to_owned(), None, self.reason, self.warning),
            Some(FallbackModel { model, engine, reason, warning }) => (
                engine.key().to_owned(),
                Some(model.clone()),
                Some(reason.clone().after(self.reason.clone())),
                Some(warning.clone()),
            ),
        };
        AnswerNotes { engine, model, reason, warning, ignored: self.ignored }
    }
}

#[cfg(test)]
mod tests {
    use hob_testkit::ScriptedEngine;

    use super::*;

    fn target(key: &str) -> RequestTarget {
        RequestTarget::to(Arc::new(ScriptedEngine::saying(&["hi"]).called(key)), None)
    }

    #[test]
    fn an_answer_of_the_cloud_says_why_and_one_of_another_engine_does_not() {
        let why = ModelReason::new("the cloud answers: no other engine answered when Hob was started");
        let notes = target(CLOUD).with_cloud_reason(Some(&why)).into_notes();
        assert_eq!((notes.reason, notes.warning), (Some(why.clone()), Some(AnswerWarning::CloudFallback)));
        let notes = target("vllm").with_cloud_reason(Some(&why)).into_notes();
        assert_eq!((notes.engine.as_str(), notes.reason, notes.warning), ("vllm", None, None));
    }

    #[test]
    fn an_alias_comes_before_the_other_reasons() {
        let alias = ModelReason::new("[models.aliases] maps a to b");
        let reason = target("vllm").after_alias(Some(alias.clone())).into_notes().reason;
        assert_eq!(reason.as_ref(), Some(&alias));
        let chosen = ModelReason::new("b was chosen");
        let routed = RequestTarget { reason: Some(chosen.clone()), ..target("vllm") };
        let reason = routed.after_alias(Some(alias.clone())).into_notes().reason;
        assert_eq!(reason, Some(chosen.after(Some(alias))));
    }
}

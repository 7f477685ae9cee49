//! The target of one request: the engine that answers, the fallback model that may replace it, and what the answer reports about both.

use std::sync::Arc;

use hob_core::engine::CLOUD;
use hob_core::{AnswerWarning, CallerRights, Engine, EngineError, ModelReason};
use hob_routing::OutcomeReporter;

use hob_engines::fallback::{Fallback, FallbackEngine, FallbackModel, FallbackSwitch, WrapEngine};
use hob_engines::pool::EnginePool;
use hob_telemetry::trace::Span;
use hob_telemetry::{RecordContext, RecordedEngine};

/// The engine and model of a request.
pub(crate) struct RequestTarget {
    engine: Arc<dyn Engine>,
    reason: Option<ModelReason>,
    warning: Option<AnswerWarning>,
    /// Hints of the caller that this engine cannot follow.
    ignored: Vec<AnswerWarning>,
    /// The fallback that may still answer; `None` if there is none.
    pending: Option<PendingFallback>,
    /// Where the router chose the model: reports how the answer ends.
    reporter: Option<OutcomeReporter>,
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
pub(crate) struct AnswerNotes {
    /// The key of the engine that answered.
    pub(crate) engine: String,
    /// The model that answered, if it is not the one that was requested.
    pub(crate) model: Option<String>,
    pub(crate) reason: Option<ModelReason>,
    pub(crate) warnings: Vec<AnswerWarning>,
}

impl RequestTarget {
    /// One engine, without a fallback.
    pub(crate) fn to(engine: Arc<dyn Engine>, reason: Option<ModelReason>) -> Self {
        RequestTarget { engine, reason, warning: None, ignored: Vec::new(), pending: None, reporter: None }
    }

    /// A fallback model from the start.
    pub(crate) fn to_fallback(fallback: FallbackModel) -> Self {
        let FallbackModel { model: _, engine, reason, warning } = fallback;
        RequestTarget { warning: Some(warning), ..RequestTarget::to(engine, Some(reason)) }
    }

    /// The same with hints that have no effect.
    pub(crate) fn ignoring(self, ignored: Vec<AnswerWarning>) -> Self {
        RequestTarget { ignored, ..self }
    }

    /// The same with a reporter of how the answer ends.
    pub(crate) fn with_outcome_reporter(self, reporter: OutcomeReporter) -> Self {
        RequestTarget { reporter: Some(reporter), ..self }
    }

    /// The reporter of how the answer ends. If another model than the chosen one answered, the choice is withdrawn instead.
    pub(crate) fn take_outcome_reporter(&mut self) -> Option<OutcomeReporter> {
        let reporter = self.reporter.take()?;
        if self.fallback_in_use().is_some() {
            reporter.withdraw();
            return None;
        }
        Some(reporter)
    }

    /// The same with a fallback.
    pub(crate) fn with_fallback(
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
    pub(crate) fn with_cloud_reason(self, reason: Option<&ModelReason>) -> Self {
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
    pub(crate) fn with_cloud_fallback(self, error: &EngineError) -> Self {
        let reason = ModelReason::new(format!("the cloud answers: {error}"));
        RequestTarget {
            warning: Some(AnswerWarning::CloudFallback),
            reason: Some(reason.after(self.reason)),
            ..self
        }
    }

    /// The same, if the caller's name for the model is an alias.
    pub(crate) fn after_alias(self, alias: Option<ModelReason>) -> Self {
        let reason = match (alias, self.reason) {
            (alias, None) => alias,
            (alias, Some(reason)) => Some(reason.after(alias)),
        };
        RequestTarget { reason, ..self }
    }

    /// The key of the engine that is asked first.
    pub(crate) fn engine(&self) -> &str {
        self.engine.key()
    }

    /// The engine to ask, with its calls recorded for a caller.
    pub(crate) fn recorded(&self, context: RecordContext) -> Arc<dyn Engine> {
        let Some(PendingFallback { fallback, pool, rights, switch }) = &self.pending else {
            return Arc::new(RecordedEngine::new(Arc::clone(&self.engine), context));
        };
        let context = Arc::new(context);
        let wrap: WrapEngine =
            Arc::new(move |engine| Arc::new(RecordedEngine::new(engine, Arc::clone(&context))));
        Arc::new(FallbackEngine {
            first: wrap(Arc::clone(&self.engine)),
            wrap,
            fallback: Arc::clone(fallback),
            pool: Arc::clone(pool),
            rights: rights.clone(),
            switch: Arc::clone(switch),
        })
    }

    fn fallback_in_use(&self) -> Option<&FallbackModel> {
        self.pending.as_ref().and_then(|pending| pending.switch.model())
    }

    /// What the answer reports. After this no fallback may answer, because the report has been made.
    pub(crate) fn into_notes(self, span: &mut Span) -> AnswerNotes {
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
        if let Some(warning) = &warning {
            span.set("hob.warning", warning.text().as_ref());
        }
        if let Some(reason) = &reason {
            span.set("hob.model.reason", reason.as_str());
        }
        AnswerNotes { engine, model, reason, warnings: warning.into_iter().chain(self.ignored).collect() }
    }
}

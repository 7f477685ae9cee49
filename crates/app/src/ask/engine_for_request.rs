//! The way of one request: which engine answers, who may stand in for it, and what the caller is told of both.

use std::sync::Arc;

use hob_core::engine::CLOUD;
use hob_core::{AnswerWarning, CallerRole, Engine, EngineError, ModelReason};
use hob_routing::OutcomeReporter;

use hob_engines::fallback::{Fallback, FallbackEngine, FallbackModel, FallbackSwitch, WrapEngine};
use hob_engines::pool::EnginePool;
use hob_telemetry::trace::Span;
use hob_telemetry::{RecordContext, RecordedEngine};

/// Who answers a request.
pub(crate) struct RequestTarget {
    engine: Arc<dyn Engine>,
    reason: Option<ModelReason>,
    warning: Option<AnswerWarning>,
    /// Who may still stand in; `None` where nobody may.
    behind: Option<Behind>,
    /// Where the router chose the model: reports how the answer ends.
    reporter: Option<OutcomeReporter>,
}

/// Who stands behind the engine that is asked first.
struct Behind {
    fallback: Arc<Fallback>,
    pool: Arc<EnginePool>,
    /// On whose behalf.
    role: CallerRole,
    switch: Arc<FallbackSwitch>,
}

/// What the caller is told.
pub(crate) struct AnswerNotes {
    /// The key of the engine that answered.
    pub(crate) engine: String,
    /// The model that answered, where it is another than the one that was asked.
    pub(crate) model: Option<String>,
    pub(crate) reason: Option<ModelReason>,
    pub(crate) warning: Option<AnswerWarning>,
}

impl RequestTarget {
    /// To an engine, and to no other.
    pub(crate) fn to(engine: Arc<dyn Engine>, reason: Option<ModelReason>) -> Self {
        RequestTarget { engine, reason, warning: None, behind: None, reporter: None }
    }

    /// To a model that stands in from the start.
    pub(crate) fn to_stand_in(stand_in: FallbackModel) -> Self {
        let FallbackModel { model: _, engine, reason, warning } = stand_in;
        RequestTarget { warning: Some(warning), ..RequestTarget::to(engine, Some(reason)) }
    }

    /// The same with a reporter of how the answer ends.
    pub(crate) fn with_outcome_reporter(self, reporter: OutcomeReporter) -> Self {
        RequestTarget { reporter: Some(reporter), ..self }
    }

    /// The reporter of how the answer ends. Where another model than the chosen one has answered, the choice is withdrawn instead.
    pub(crate) fn take_outcome_reporter(&mut self) -> Option<OutcomeReporter> {
        let reporter = self.reporter.take()?;
        if self.stand_in().is_some() {
            reporter.withdraw();
            return None;
        }
        Some(reporter)
    }

    /// The same with somebody behind it.
    pub(crate) fn before(self, fallback: &Arc<Fallback>, pool: &Arc<EnginePool>, role: CallerRole) -> Self {
        let (fallback, pool) = (Arc::clone(fallback), Arc::clone(pool));
        RequestTarget { behind: Some(Behind { fallback, pool, role, switch: Arc::default() }), ..self }
    }

    /// The same, where the cloud is the engine of the house only because no other answered when it was opened.
    pub(crate) fn instead_of(self, house: Option<&ModelReason>) -> Self {
        match house {
            Some(reason) if self.engine.key() == CLOUD => RequestTarget {
                warning: self.warning.or(Some(AnswerWarning::CloudFallback)),
                reason: Some(reason.clone().after(self.reason)),
                ..self
            },
            _ => self,
        }
    }

    /// The same, where the cloud is asked because an engine of the house that might have the model failed so.
    pub(crate) fn for_want_of(self, error: &EngineError) -> Self {
        let reason = ModelReason::new(format!("the cloud answers: {error}"));
        RequestTarget {
            warning: Some(AnswerWarning::CloudFallback),
            reason: Some(reason.after(self.reason)),
            ..self
        }
    }

    /// The key of the engine that is asked first.
    pub(crate) fn engine(&self) -> &str {
        self.engine.key()
    }

    /// The engine to ask, with its work put down to a caller.
    pub(crate) fn recorded(&self, context: RecordContext) -> Arc<dyn Engine> {
        let Some(Behind { fallback, pool, role, switch }) = &self.behind else {
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
            role: *role,
            switch: Arc::clone(switch),
        })
    }

    fn stand_in(&self) -> Option<&FallbackModel> {
        self.behind.as_ref().and_then(|behind| behind.switch.model())
    }

    /// What there is to tell now. From here on nobody else takes over: the caller would not hear of it.
    pub(crate) fn tell(self, span: &mut Span) -> AnswerNotes {
        if let Some(behind) = &self.behind {
            behind.switch.close();
        }
        let told = match self.stand_in() {
            None => AnswerNotes {
                engine: self.engine.key().to_owned(),
                model: None,
                reason: self.reason,
                warning: self.warning,
            },
            Some(FallbackModel { model, engine, reason, warning }) => AnswerNotes {
                engine: engine.key().to_owned(),
                model: Some(model.clone()),
                reason: Some(reason.clone().after(self.reason.clone())),
                warning: Some(warning.clone()),
            },
        };
        if let Some(warning) = &told.warning {
            span.set("hob.warning", warning.text().as_ref());
        }
        if let Some(reason) = &told.reason {
            span.set("hob.model.reason", reason.as_str());
        }
        told
    }
}

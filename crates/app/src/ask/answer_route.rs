//! The target of one request, whose calls are recorded, with what reports how the answer ends.

use std::sync::Arc;

use hob_core::{Engine, ModelReason};
use hob_engines::{AnswerNotes, RequestTarget};
use hob_routing::OutcomeReporter;
use hob_telemetry::trace::Span;
use hob_telemetry::{RecordContext, RecordedEngine};

/// What answers a request.
pub(crate) struct AnswerRoute {
    pub(crate) target: RequestTarget,
    /// Where the router chose the model: reports how the answer ends.
    pub(crate) reporter: Option<OutcomeReporter>,
}

impl AnswerRoute {
    /// The same, if the caller's name for the model is an alias.
    pub(crate) fn after_alias(self, alias: Option<ModelReason>) -> Self {
        AnswerRoute { target: self.target.after_alias(alias), ..self }
    }

    /// The reporter of how the answer ends. If another model than the chosen one answered, the choice is withdrawn instead.
    pub(crate) fn take_outcome_reporter(&mut self) -> Option<OutcomeReporter> {
        let reporter = self.reporter.take()?;
        if self.target.fallback_in_use().is_some() {
            reporter.withdraw();
            return None;
        }
        Some(reporter)
    }

    /// The key of the engine that is asked first.
    pub(crate) fn engine(&self) -> &str {
        self.target.engine()
    }

    /// The engine to ask, with its calls recorded for a caller.
    pub(crate) fn recorded(&self, context: RecordContext) -> Arc<dyn Engine> {
        let context = Arc::new(context);
        self.target.wrapped(move |engine| Arc::new(RecordedEngine::new(engine, Arc::clone(&context))))
    }

    /// What the answer reports, which the span reports too. After this no fallback may answer.
    pub(crate) fn into_notes(self, span: &mut Span) -> AnswerNotes {
        let notes = self.target.into_notes();
        if let Some(warning) = &notes.warning {
            span.set("hob.warning", warning.text().as_ref());
        }
        if let Some(reason) = &notes.reason {
            span.set("hob.model.reason", reason.as_str());
        }
        notes
    }
}

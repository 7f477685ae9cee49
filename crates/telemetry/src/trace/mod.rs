//! Traces for OpenTelemetry: a span for each request, each call to an engine, and each tool call.
//!
//! Names follow the conventions for generative AI. A span never contains questions, answers or error texts of engines, which may
//! repeat the question.

mod export;
mod otlp;
mod span;
mod tools;

use std::borrow::Cow;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::Stream;
use hob_core::{AskError, Caller, Delta, DeltaStream, EngineError, RequestSource};

pub use export::TraceExporter;
pub use span::{AttributeValue, Span, SpanKind, Tracer};
pub use tools::TracedTools;

/// Opens the span of a whole request.
pub fn request_span(tracer: &Tracer, caller: &Caller, model: &str) -> Span {
    let kind = match caller.source {
        RequestSource::Server => SpanKind::Server,
        RequestSource::Channel => SpanKind::Consumer,
        RequestSource::Ask | RequestSource::Scheduler | RequestSource::Bench => SpanKind::Internal,
    };
    let mut span = tracer.start(caller.trace_parent, kind, || format!("{} request", caller.source.as_str()));
    span.set("hob.source", caller.source.as_str());
    span.set("hob.run", &*caller.run);
    if let Some(request_id) = &caller.request_id {
        span.set("hob.request_id", &**request_id);
    }
    if let Some(key) = &caller.permit.key {
        span.set("hob.key", &**key);
    }
    span.set("gen_ai.request.model", model);
    span
}

/// The caller with this span as the parent of its work.
pub fn under<'a>(caller: &'a Caller, span: &Span) -> Cow<'a, Caller> {
    match span.trace_parent() {
        None => Cow::Borrowed(caller),
        trace_parent => Cow::Owned(Caller { trace_parent, ..caller.clone() }),
    }
}

/// The kind of error.
pub fn error_type(error: &EngineError) -> Cow<'static, str> {
    Cow::Borrowed(match error {
        EngineError::Unreachable { .. } => "engine_unreachable",
        EngineError::Timeout { .. } => "engine_timeout",
        EngineError::Refused { status, .. } => return Cow::Owned(status.to_string()),
        EngineError::ModelNotFound { .. } => "model_not_found",
        EngineError::Unsupported { .. } => "unsupported",
        EngineError::NotConfigured { .. } => "not_configured",
        EngineError::Limit(_) => "limit_reached",
        EngineError::Malformed { .. } => "malformed_answer",
        EngineError::Interrupted { .. } => "interrupted",
    })
}

/// The kind of error of a request.
pub fn ask_error_type(error: &AskError) -> Cow<'static, str> {
    match error {
        AskError::Engine(error) => error_type(error),
        AskError::UnknownTool { .. } | AskError::ToolNotAvailable { .. } => Cow::Borrowed("unknown_tool"),
        AskError::UnknownAgent { .. } => Cow::Borrowed("unknown_agent"),
        AskError::NoAgent => Cow::Borrowed("no_agent"),
        AskError::NoModel(_) => Cow::Borrowed("no_model_to_choose"),
        AskError::NoAliasTarget { .. } => Cow::Borrowed("model_not_found"),
        AskError::CloudNotAllowed { .. } => Cow::Borrowed("cloud_not_allowed"),
        AskError::ModelNotAllowed { .. } | AskError::EngineNotAllowed { .. } => {
            Cow::Borrowed("model_not_allowed")
        }
        AskError::KeyNotValid { .. } => Cow::Borrowed("key_not_valid"),
        AskError::Limit(_) => Cow::Borrowed("limit_reached"),
        AskError::Attachment { .. } => Cow::Borrowed("refused_attachment"),
    }
}

/// Ends the span of a request with its outcome.
pub fn end_with<T>(span: &mut Span, outcome: &Result<T, AskError>) {
    if let Err(error) = outcome {
        span.fail(ask_error_type(error));
    }
    span.end();
}

/// The provider of the model, by the convention if it has a name.
pub fn provider<'a>(engine: &'a str, model: &str) -> &'a str {
    if engine != "cloud" {
        return engine;
    }
    match model.to_lowercase() {
        model if model.contains("claude") => "anthropic",
        model if model.contains("gemini") => "gcp.gemini",
        _ => "openai",
    }
}

/// A stream that ends the span of its request.
pub struct TracedStream {
    pub deltas: DeltaStream,
    pub span: Span,
}

impl Stream for TracedStream {
    type Item = Result<Delta, EngineError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let next = std::task::ready!(this.deltas.as_mut().poll_next(context));
        match &next {
            Some(Ok(Delta::Done { .. })) | None => this.span.end(),
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                this.span.fail(error_type(error));
                this.span.end();
            }
        }
        Poll::Ready(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cloud_model_has_its_provider() {
        let of = |model| provider("cloud", model);
        assert_eq!([of("Claude-x"), of("gemini-3"), of("gpt-5.2")], ["anthropic", "gcp.gemini", "openai"]);
        assert_eq!(provider("ollama", "claude-distilled"), "ollama");
    }
}

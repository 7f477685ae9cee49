//! Complete and streamed answers: resolves the model, chooses agent or engine, and reports what answered.

use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;
use futures::{StreamExt, stream};
use hob_core::caller_policy::admit_question;
use hob_core::{
    Agent, AgentOutcome, AnswerSource, AnswerWarning, Answered, Ask, AskError, Caller, Collector, Delta,
    DeltaStream, EngineError, GenerateRequest, GenerationStream, ModelReason, ReplyMode, RunningRequest,
    SpeechRecording, TextSink, ToolResult,
};

use super::AskService;
use super::run_context::Asked;
use crate::ask::agent_or_engine::{AnswerPath, answer_path};
use crate::ask::answer_route::AnswerRoute;
use crate::ask::key_admission::{Admitted, Begun, counted};
use crate::ask::memory_context::Recalled;
use hob_engines::with_soft_limit;
use hob_telemetry::charging;
use hob_telemetry::trace::{Span, TracedStream, end_with};

/// An answer in progress.
pub struct AnswerStream {
    /// The key of the engine that answers.
    pub engine: String,
    /// The model that answers.
    pub model: String,
    /// Why this model; `None` if the caller requested it.
    pub reason: Option<ModelReason>,
    pub warnings: Vec<AnswerWarning>,
    /// The passages of the memory that the model got.
    pub sources: Vec<AnswerSource>,
    /// The results of the calls that were made before the model was asked.
    pub first_results: Vec<ToolResult>,
    pub deltas: DeltaStream,
}

impl AnswerStream {
    /// The same, as a request that runs until its end.
    pub(super) fn counted(self, running: Option<RunningRequest>) -> Self {
        AnswerStream { deltas: counted(self.deltas, running), ..self }
    }
}

/// A request that is ready to be asked.
struct PreparedAnswer {
    route: AnswerRoute,
    path: AnswerPath<Arc<dyn Agent>>,
    ignored: Vec<AnswerWarning>,
    sources: Vec<AnswerSource>,
    first_results: Vec<ToolResult>,
}

/// The complete answer with what it reports.
pub(super) fn answered(
    mut route: AnswerRoute,
    outcome: Result<AgentOutcome, AskError>,
    ignored: Vec<AnswerWarning>,
    span: &mut Span,
) -> Result<Answered, AskError> {
    if let Some(reporter) = route.take_outcome_reporter() {
        reporter.report(&outcome);
    }
    let AgentOutcome { mut generation, turns, tool_results } = outcome?;
    let notes = route.into_notes(span);
    generation.warnings.extend(notes.warning.into_iter().chain(notes.ignored).chain(ignored));
    let sources = Vec::new();
    Ok(Answered { engine: notes.engine, generation, turns, tool_results, reason: notes.reason, sources })
}

/// The streamed answer with what it reports. `model` is the requested one.
pub(super) fn streaming(
    mut route: AnswerRoute,
    begun: Result<GenerationStream, AskError>,
    model: String,
    ignored: Vec<AnswerWarning>,
    span: &mut Span,
) -> Result<AnswerStream, AskError> {
    let GenerationStream { mut warnings, deltas } = match (begun, route.take_outcome_reporter()) {
        (Ok(begun), Some(reporter)) => reporter.watch(begun),
        (Err(error), Some(reporter)) => {
            reporter.report_error(&error);
            return Err(error);
        }
        (begun, None) => begun?,
    };
    let notes = route.into_notes(span);
    warnings.extend(notes.warning.into_iter().chain(notes.ignored).chain(ignored));
    let model = notes.model.unwrap_or(model);
    Ok(AnswerStream {
        engine: notes.engine,
        model,
        reason: notes.reason,
        warnings,
        sources: Vec::new(),
        first_results: Vec::new(),
        deltas,
    })
}

/// The stream, which ends the span of its request.
pub(super) fn traced(
    begun: Result<AnswerStream, AskError>,
    mut span: Span,
) -> Result<AnswerStream, AskError> {
    if begun.is_err() {
        end_with(&mut span, &begun);
    }
    let mut streaming = begun?;
    if span.trace_parent().is_some() {
        streaming.deltas = Box::pin(TracedStream { deltas: streaming.deltas, span });
    }
    Ok(streaming)
}

impl AskService {
    /// The complete answer, and the steps of the agent.
    pub async fn complete(&self, request: GenerateRequest, caller: &Caller) -> Result<Answered, AskError> {
        let Begun { caller, running: _running, mut span } = self.begin(caller, &request.model).await?;
        let outcome = self.answer(request, &caller, &mut span).await;
        end_with(&mut span, &outcome);
        outcome
    }

    /// Applies the rights of the caller, and downloads the images that the owner named by URL. The warnings name what was dropped.
    pub(super) async fn admit(
        &self,
        request: &mut GenerateRequest,
        caller: &Caller,
    ) -> Result<Vec<AnswerWarning>, AskError> {
        let warnings = admit_question(request, caller.role)?;
        self.images.fetch_all(request).await?;
        Ok(warnings)
    }

    async fn answer(
        &self,
        mut request: GenerateRequest,
        caller: &Caller,
        span: &mut Span,
    ) -> Result<Answered, AskError> {
        let prepared = self.prepare(&mut request, ReplyMode::Complete, caller).await?;
        let PreparedAnswer { route, path, ignored, sources, first_results: mut tool_results } = prepared;
        let outcome = self.answer_by(&route, &request, path, caller, span).await;
        let answered = answered(route, outcome, ignored, span)?;
        tool_results.extend(answered.tool_results);
        Ok(Answered { sources, tool_results, ..answered })
    }

    /// What comes before the question is asked: the rights of the caller, the model and its engine, and what Hob adds to the request.
    async fn prepare(
        &self,
        request: &mut GenerateRequest,
        mode: ReplyMode,
        caller: &Caller,
    ) -> Result<PreparedAnswer, AskError> {
        let mut ignored = self.admit(request, caller).await?;
        let (wish, alias) = self.wish(request, &caller.agent).await?;
        let route = self.route(request, caller).await?.after_alias(alias);
        self.documents.place_all(request, route.engine()).await?;
        let path = answer_path(request, mode, wish);
        let Recalled { sources, warning } = self.recalled(request, caller, path.agent()).await;
        ignored.extend(warning);
        let first_results = self.first_results(request, caller).await?;
        Ok(PreparedAnswer { route, path, ignored, sources, first_results })
    }

    async fn answer_by(
        &self,
        route: &AnswerRoute,
        request: &GenerateRequest,
        path: AnswerPath<Arc<dyn Agent>>,
        caller: &Caller,
        span: &mut Span,
    ) -> Result<AgentOutcome, AskError> {
        match path {
            AnswerPath::Engine => {
                let engine = with_soft_limit(route.recorded(self.record_context(caller, None)), request);
                let generation = engine.generate(request).await?;
                Ok(AgentOutcome { generation, turns: 1, tool_results: Vec::new() })
            }
            AnswerPath::Agent(agent) => {
                by_agent(span, agent.name());
                let charge = self.charge(caller, Some(agent.name()));
                let context = self.context(route, Asked { request, caller }, agent.name(), None)?;
                Ok(charging(charge, agent.run(request, &context)).await?)
            }
        }
    }

    /// The answer as a stream. Returns with the first piece, so that a failure before it is an error and not a
    /// broken stream.
    pub async fn stream(&self, request: GenerateRequest, caller: &Caller) -> Result<AnswerStream, AskError> {
        let Begun { caller, running, mut span } = self.begin(caller, &request.model).await?;
        let begun = self.begin_stream(request, &caller, &mut span).await;
        traced(begun.map(|begun| begun.counted(running)), span)
    }

    async fn begin_stream(
        &self,
        mut request: GenerateRequest,
        caller: &Caller,
        span: &mut Span,
    ) -> Result<AnswerStream, AskError> {
        let prepared = self.prepare(&mut request, ReplyMode::Streamed, caller).await?;
        let PreparedAnswer { route, path, ignored, sources, first_results } = prepared;
        let model = request.model.clone();
        let begun = self.first_piece(&route, request, path, caller, span).await;
        Ok(AnswerStream { sources, first_results, ..streaming(route, begun, model, ignored, span)? })
    }

    /// A stream whose first piece has arrived.
    async fn first_piece(
        &self,
        route: &AnswerRoute,
        request: GenerateRequest,
        path: AnswerPath<Arc<dyn Agent>>,
        caller: &Caller,
        span: &mut Span,
    ) -> Result<GenerationStream, AskError> {
        let stream = match path {
            AnswerPath::Engine => {
                let engine = with_soft_limit(route.recorded(self.record_context(caller, None)), &request);
                engine.stream(&request).await?
            }
            AnswerPath::Agent(agent) => {
                by_agent(span, agent.name());
                self.agent_stream(route, request, agent, caller)?
            }
        };
        with_first_piece(stream, route.engine()).await
    }
}

/// The same stream, once its first piece is there.
pub(super) async fn with_first_piece(
    stream: GenerationStream,
    engine: &str,
) -> Result<GenerationStream, AskError> {
    let GenerationStream { warnings, mut deltas } = stream;
    let first = match deltas.next().await {
        Some(first) => first?,
        None => {
            let reason = "it ended before it began".to_owned();
            return Err(EngineError::Interrupted { engine: engine.to_owned(), reason }.into());
        }
    };
    Ok(GenerationStream { warnings, deltas: Box::pin(stream::iter([Ok(first)]).chain(deltas)) })
}

#[async_trait]
impl Ask for AskService {
    async fn ask(&self, request: GenerateRequest, caller: &Caller) -> Result<Answered, AskError> {
        self.complete(request, caller).await
    }

    async fn ask_live(
        &self,
        request: GenerateRequest,
        caller: &Caller,
        listener: &dyn TextSink,
    ) -> Result<Answered, AskError> {
        let AnswerStream { engine, model, reason, warnings, sources, first_results, mut deltas } =
            self.stream(request, caller).await?;
        let mut collector = Collector::default();
        let mut is_complete = false;
        while let Some(delta) = deltas.next().await {
            let delta = delta?;
            match &delta {
                Delta::Text(piece) => listener.text(&piece.text).await,
                Delta::Done { .. } => is_complete = true,
                _ => {}
            }
            collector.push(delta);
        }
        let interrupted = || EngineError::Interrupted {
            engine: engine.clone(),
            reason: "it ended before its answer was complete".to_owned(),
        };
        let mut generation = collector.finish(model).filter(|_| is_complete).ok_or_else(interrupted)?;
        generation.warnings = warnings;
        // The stream does not say how often the engine was asked, and which tools the agent used.
        Ok(Answered { engine, generation, turns: 1, tool_results: first_results, reason, sources })
    }

    async fn make_first_calls(
        &self,
        request: &GenerateRequest,
        caller: &Caller,
    ) -> Result<Vec<ToolResult>, AskError> {
        // The calls use the rights of the key, and count as a request of it.
        let Admitted { caller, running: _running } = self.admitted(Cow::Borrowed(caller)).await?;
        match &caller.first_calls {
            Some(first) => self.call_first(first, request, &caller).await,
            None => Ok(Vec::new()),
        }
    }

    async fn document_text(&self, name: &str, bytes: Vec<u8>) -> Result<String, AskError> {
        self.documents.text_of(name, bytes).await
    }

    async fn transcribe(&self, recording: SpeechRecording, caller: &Caller) -> Result<String, AskError> {
        self.transcription(recording, caller).await
    }
}

/// An agent answers the request.
fn by_agent(span: &mut Span, agent: &str) {
    span.rename(|| format!("invoke_agent {agent}"));
    span.set("gen_ai.operation.name", "invoke_agent");
    span.set("gen_ai.agent.name", agent);
}

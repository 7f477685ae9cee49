//! Wraps an engine: records every inference once, however it ends, and publishes it.
//!
//! One wrapper per run, so that direct answers, streams and each turn of an agent use the same code.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use futures::Stream;
use hob_core::token_estimate::{prompt_tokens, tokens_of};
use hob_core::{
    Answer, CallReservation, CallTally, CompletionRequest, Delta, DeltaStream, DetokenizeRequest,
    EmbedInputs, EmbedRequest, Embeddings, Engine, EngineError, Event, FinishReason, GenerateRequest,
    Generation, GenerationStream, KeyGrant, MediaAnswer, MediaRequest, MediaStream, MediaTask, ModelInfo,
    PlannedCall, Prompt, RequestSource, RerankRequest, Reranking, RunEvents, TokenizeRequest, Tokenized,
    TraceParent, Usage,
};
use hob_net::trace_context::{current, within};

use crate::energy::EnergyShare;
use crate::inference::{Inference, InferenceEnd};
use crate::recorder::Recorder;
use crate::trace::{Span, SpanKind, error_type, provider};

/// The context of the inferences of one run.
#[derive(Clone)]
pub struct RecordContext {
    pub run: Arc<str>,
    pub source: RequestSource,
    pub agent: Option<String>,
    pub events: RunEvents,
    pub recorder: Recorder,
    /// The parent span; `None` for the current one.
    pub trace_parent: Option<TraceParent>,
    /// The key that pays.
    pub key: Option<Arc<KeyGrant>>,
    /// Whom the request is for, in the words of the client.
    pub end_user: Option<Arc<str>>,
    /// Counts what the request uses.
    pub tally: Option<Arc<CallTally>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Generate,
    Stream,
    Complete,
    StreamCompletion,
    Embed,
    Rerank,
    Media(MediaTask),
}

impl Operation {
    /// The name in OpenTelemetry.
    fn as_str(self) -> &'static str {
        match self {
            Operation::Generate | Operation::Stream => "chat",
            Operation::Complete | Operation::StreamCompletion => "text_completion",
            Operation::Embed => "embeddings",
            Operation::Rerank => "rerank",
            Operation::Media(task) => task.name(),
        }
    }
}

pub struct RecordedEngine {
    engine: Arc<dyn Engine>,
    context: Arc<RecordContext>,
}

impl RecordedEngine {
    pub fn new(engine: Arc<dyn Engine>, context: impl Into<Arc<RecordContext>>) -> Self {
        RecordedEngine { engine, context: context.into() }
    }

    /// Reserves what the call is expected to cost its key, and begins it. `completion_tokens` is the most that the answer may have.
    async fn begin(
        &self,
        operation: Operation,
        model: &str,
        prompt_estimate: u64,
        completion_tokens: Option<u64>,
    ) -> Result<InferenceInProgress, EngineError> {
        let reservation = match self.context.key.as_ref().and_then(|key| key.spending.as_ref()) {
            None => None,
            Some(spending) => {
                let engine = self.engine.key();
                let call = PlannedCall { engine, model, prompt_tokens: prompt_estimate, completion_tokens };
                Some(spending.reserve(call).await?)
            }
        };
        let mut inference = self.start(operation, model, prompt_estimate);
        inference.reservation = reservation;
        Ok(inference)
    }

    fn start(&self, operation: Operation, model: &str, prompt_estimate: u64) -> InferenceInProgress {
        let engine = self.engine.key().to_owned();
        let span = self.span(operation, &engine, model);
        if self.context.events.have_subscribers() {
            let (engine, model) = (engine.clone(), model.to_owned());
            self.context.events.publish(Event::InferenceStart { engine, model });
        }
        InferenceInProgress {
            context: Arc::clone(&self.context),
            engine,
            model: model.to_owned(),
            streamed: matches!(operation, Operation::Stream | Operation::StreamCompletion),
            started: SystemTime::now(),
            clock: Instant::now(),
            first_token: None,
            prompt_estimate,
            written: 0,
            usage: None,
            finish_reason: None,
            settled: false,
            reservation: None,
            share: self.context.recorder.meters.begin(self.engine.as_ref()),
            span,
        }
    }

    /// Follows the OpenTelemetry conventions for generative AI.
    fn span(&self, operation: Operation, engine: &str, model: &str) -> Span {
        let operation = operation.as_str();
        let RecordContext { recorder, trace_parent, agent, key, .. } = &*self.context;
        let parent = trace_parent.or_else(current);
        let mut span = recorder.tracer.start(parent, SpanKind::Client, || format!("{operation} {model}"));
        span.set("gen_ai.operation.name", operation);
        span.set("gen_ai.provider.name", provider(engine, model));
        span.set("gen_ai.request.model", model);
        if let Some(agent) = agent {
            span.set("gen_ai.agent.name", agent.as_str());
        }
        if let Some(key) = key {
            span.set("hob.key", &*key.name);
        }
        span
    }
}

#[async_trait]
impl Engine for RecordedEngine {
    fn key(&self) -> &str {
        self.engine.key()
    }

    fn address(&self) -> &str {
        self.engine.address()
    }

    async fn generate(&self, request: &GenerateRequest) -> Result<Generation, EngineError> {
        let begun =
            self.begin(Operation::Generate, &request.model, prompt_tokens(request), answer_limit(request));
        let inference = begun.await?;
        inference.whole(self.engine.generate(request)).await
    }

    async fn stream(&self, request: &GenerateRequest) -> Result<GenerationStream, EngineError> {
        let begun =
            self.begin(Operation::Stream, &request.model, prompt_tokens(request), answer_limit(request));
        let inference = begun.await?;
        inference.streamed(self.engine.stream(request)).await
    }

    async fn complete(&self, request: &CompletionRequest) -> Result<Generation, EngineError> {
        let (prompt, limit) = (completion_tokens(request), text_limit(request));
        let inference = self.begin(Operation::Complete, &request.model, prompt, limit).await?;
        inference.whole(self.engine.complete(request)).await
    }

    async fn stream_completion(&self, request: &CompletionRequest) -> Result<GenerationStream, EngineError> {
        let (prompt, limit) = (completion_tokens(request), text_limit(request));
        let inference = self.begin(Operation::StreamCompletion, &request.model, prompt, limit).await?;
        inference.streamed(self.engine.stream_completion(request)).await
    }

    /// Tokenizing does not run the model, so it is not recorded.
    async fn tokenize(&self, request: &TokenizeRequest) -> Result<Tokenized, EngineError> {
        self.engine.tokenize(request).await
    }

    async fn detokenize(&self, request: &DetokenizeRequest) -> Result<String, EngineError> {
        self.engine.detokenize(request).await
    }

    /// The result is no text, so no tokens were written.
    async fn rerank(&self, request: &RerankRequest) -> Result<Reranking, EngineError> {
        // The model reads the question with every document.
        let documents: usize = request.documents.iter().map(String::len).sum();
        let bytes = documents + request.query.len() * request.documents.len();
        let mut inference =
            self.begin(Operation::Rerank, &request.model, tokens_of(bytes as u64), Some(0)).await?;
        match within(inference.span.trace_parent(), self.engine.rerank(request)).await {
            Ok(mut reranking) => {
                inference.read_only(&mut reranking.prompt_tokens);
                Ok(reranking)
            }
            Err(error) => {
                inference.fail(&error);
                Err(error)
            }
        }
    }

    /// An embedding has no completion tokens.
    async fn embed(&self, request: &EmbedRequest) -> Result<Embeddings, EngineError> {
        let tokens = match &request.inputs {
            EmbedInputs::Texts(texts) => tokens_of(texts.iter().map(|text| text.len() as u64).sum()),
            EmbedInputs::Tokens(lists) => lists.iter().map(|tokens| tokens.len() as u64).sum(),
        };
        let mut inference = self.begin(Operation::Embed, &request.model, tokens, Some(0)).await?;
        match within(inference.span.trace_parent(), self.engine.embed(request)).await {
            Ok(mut embeddings) => {
                inference.read_only(&mut embeddings.prompt_tokens);
                Ok(embeddings)
            }
            Err(error) => {
                inference.fail(&error);
                Err(error)
            }
        }
    }

    /// Recorded when its last byte has come. Sound and pictures have no token counts.
    async fn media(&self, request: &MediaRequest) -> Result<MediaAnswer, EngineError> {
        let mut inference = self.begin(Operation::Media(request.task), &request.model, 0, Some(0)).await?;
        inference.usage = Some(Usage {
            prompt_tokens: 0,
            completion_tokens: 0,
            cached_tokens: None,
            reasoning_tokens: None,
            load_time: None,
        });
        match within(inference.span.trace_parent(), self.engine.media(request)).await {
            Ok(MediaAnswer { content_type, body }) => {
                Ok(MediaAnswer { content_type, body: Box::pin(RecordedMedia { body, inference }) })
            }
            Err(error) => {
                inference.fail(&error);
                Err(error)
            }
        }
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, EngineError> {
        self.engine.list_models().await
    }

    async fn describe(&self, model: &ModelInfo) -> Option<ModelInfo> {
        self.engine.describe(model).await
    }

    async fn health(&self) -> bool {
        self.engine.health().await
    }

    fn lists_every_model(&self) -> bool {
        self.engine.lists_every_model()
    }

    fn means(&self, asked: &str, listed: &str) -> bool {
        self.engine.means(asked, listed)
    }

    async fn prepare(&self, model: &str) -> Result<(), EngineError> {
        self.engine.prepare(model).await
    }
}

/// About how many tokens a text to continue has, should the engine not say.
fn completion_tokens(request: &CompletionRequest) -> u64 {
    let prompt = match &request.prompt {
        Prompt::Text(text) => tokens_of(text.len() as u64),
        Prompt::Tokens(tokens) => tokens.len() as u64,
    };
    prompt + request.suffix.as_ref().map_or(0, |suffix| tokens_of(suffix.len() as u64))
}

/// The most tokens that all answers may have together, if the request sets a limit.
fn answer_limit(request: &GenerateRequest) -> Option<u64> {
    request.max_tokens().map(|most| u64::from(most) * u64::from(request.answers()))
}

fn text_limit(request: &CompletionRequest) -> Option<u64> {
    if request.prompt_only {
        return Some(0);
    }
    request.max_tokens().map(|most| u64::from(most) * u64::from(request.answers()))
}

/// Bytes of an answer: text, reasoning and calls.
fn written(answer: &Answer) -> u64 {
    let thought = answer.reasoning.as_ref().map_or(0, String::len);
    let calls: usize = answer.tool_calls.iter().map(|call| call.arguments.len()).sum();
    (answer.content.len() + thought + calls) as u64
}

/// An inference in progress. If dropped before it is settled, it was cancelled.
struct InferenceInProgress {
    context: Arc<RecordContext>,
    engine: String,
    model: String,
    streamed: bool,
    started: SystemTime,
    clock: Instant,
    first_token: Option<Duration>,
    /// The estimated prompt tokens, if the engine reports none.
    prompt_estimate: u64,
    written: u64,
    usage: Option<Usage>,
    finish_reason: Option<FinishReason>,
    settled: bool,
    /// What is reserved of the limits of its key.
    reservation: Option<Box<dyn CallReservation>>,
    /// Its share of the energy.
    share: Option<EnergyShare>,
    span: Span,
}

impl InferenceInProgress {
    /// Waits for a whole answer, and records it.
    async fn whole(
        mut self,
        answer: impl Future<Output = Result<Generation, EngineError>>,
    ) -> Result<Generation, EngineError> {
        match within(self.span.trace_parent(), answer).await {
            Ok(mut generation) => {
                self.written = generation.answers().map(written).sum();
                self.usage = generation.usage;
                generation.usage = Some(self.counted().0);
                self.span.set("gen_ai.response.model", generation.model.as_str());
                self.settle(InferenceEnd::Complete(generation.answer.finish_reason.clone()));
                Ok(generation)
            }
            Err(error) => {
                self.fail(&error);
                Err(error)
            }
        }
    }

    /// Waits for a stream, which is recorded at its end.
    async fn streamed(
        mut self,
        stream: impl Future<Output = Result<GenerationStream, EngineError>>,
    ) -> Result<GenerationStream, EngineError> {
        match within(self.span.trace_parent(), stream).await {
            Ok(GenerationStream { warnings, deltas }) => Ok(GenerationStream {
                warnings,
                deltas: Box::pin(RecordedStream { deltas, inference: self }),
            }),
            Err(error) => {
                self.fail(&error);
                Err(error)
            }
        }
    }

    /// Records an inference that wrote nothing, and gives its count of tokens where the engine gave none.
    fn read_only(&mut self, prompt_tokens: &mut Option<u64>) {
        self.usage = prompt_tokens.map(|prompt_tokens| Usage {
            prompt_tokens,
            completion_tokens: 0,
            cached_tokens: None,
            reasoning_tokens: None,
            load_time: None,
        });
        *prompt_tokens = Some(self.counted().0.prompt_tokens);
        self.settle(InferenceEnd::Complete(FinishReason::Stop));
    }

    /// The usage, and whether it is an estimate.
    fn counted(&self) -> (Usage, bool) {
        match self.usage {
            Some(usage) => (usage, false),
            None => {
                let completion_tokens = tokens_of(self.written);
                (
                    Usage {
                        prompt_tokens: self.prompt_estimate,
                        completion_tokens,
                        cached_tokens: None,
                        reasoning_tokens: None,
                        load_time: None,
                    },
                    true,
                )
            }
        }
    }

    fn fail(&mut self, error: &EngineError) {
        self.span.fail(error_type(error));
        self.settle(InferenceEnd::Failed(error.to_string()));
    }

    fn settle(&mut self, ending: InferenceEnd) {
        if std::mem::replace(&mut self.settled, true) {
            return;
        }
        let latency = self.clock.elapsed();
        let (usage, estimated) = self.counted();
        self.end_span(&ending, usage);
        if let Some(reservation) = self.reservation.take() {
            match (&ending, self.first_token, self.usage) {
                // An engine that failed before it answered used nothing.
                (InferenceEnd::Failed(_), None, None) => drop(reservation),
                _ => reservation.settle(usage),
            }
        }
        if self.context.events.have_subscribers() {
            self.context.events.publish(Event::InferenceEnd {
                engine: self.engine.clone(),
                model: self.model.clone(),
                success: matches!(ending, InferenceEnd::Complete(_)),
                latency,
            });
        }
        if let Some(tally) = &self.context.tally {
            tally.add(&self.model, usage);
        }
        self.context.recorder.log.record(Inference {
            started: self.started,
            run: Arc::clone(&self.context.run),
            source: self.context.source,
            engine: std::mem::take(&mut self.engine),
            model: std::mem::take(&mut self.model),
            agent: self.context.agent.clone(),
            key: self.context.key.as_ref().map(|key| Arc::clone(&key.name)),
            end_user: self.context.end_user.clone(),
            streamed: self.streamed,
            usage,
            estimated,
            latency,
            first_token: self.first_token,
            energy: self.share.take().and_then(EnergyShare::end),
            ending,
        });
    }

    fn end_span(&mut self, ending: &InferenceEnd, usage: Usage) {
        self.span.set("gen_ai.usage.input_tokens", usage.prompt_tokens);
        self.span.set("gen_ai.usage.output_tokens", usage.completion_tokens);
        match ending {
            InferenceEnd::Complete(reason) => self.span.set("gen_ai.response.finish_reasons", reason),
            InferenceEnd::Cancelled => self.span.fail("cancelled"),
            // The kind of failure is already set.
            InferenceEnd::Failed(_) => {}
        }
        self.span.end();
    }

    /// Notes a delta, and adds the usage to `Done` if the engine reported none.
    fn note(&mut self, delta: &mut Delta) {
        if self.first_token.is_none() {
            self.first_token = Some(self.clock.elapsed());
        }
        match delta {
            Delta::Text(piece) => self.written += piece.text.len() as u64,
            Delta::Reasoning { text, .. } => self.written += text.len() as u64,
            Delta::ToolCall(piece) => self.written += piece.arguments.len() as u64,
            Delta::Step(_) | Delta::ReasoningSeal { .. } => {}
            Delta::Finish { reason, .. } => self.finish_reason = Some(reason.clone()),
            Delta::Done { usage } => {
                self.usage = *usage;
                *usage = Some(self.counted().0);
                let reason = self.finish_reason.take().unwrap_or(FinishReason::Stop);
                self.settle(InferenceEnd::Complete(reason));
            }
        }
    }
}

impl Drop for InferenceInProgress {
    fn drop(&mut self) {
        self.settle(InferenceEnd::Cancelled);
    }
}

struct RecordedMedia {
    body: MediaStream,
    inference: InferenceInProgress,
}

impl Stream for RecordedMedia {
    type Item = Result<Vec<u8>, EngineError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let next = std::task::ready!(this.body.as_mut().poll_next(context));
        match &next {
            Some(Ok(_)) => {}
            Some(Err(error)) => this.inference.fail(error),
            None => this.inference.settle(InferenceEnd::Complete(FinishReason::Stop)),
        }
        Poll::Ready(next)
    }
}

struct RecordedStream {
    deltas: DeltaStream,
    inference: InferenceInProgress,
}

impl Stream for RecordedStream {
    type Item = Result<Delta, EngineError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let mut next = std::task::ready!(this.deltas.as_mut().poll_next(context));
        match &mut next {
            Some(Ok(delta)) => this.inference.note(delta),
            Some(Err(error)) => this.inference.fail(error),
            None => {
                this.inference.span.fail("interrupted");
                this.inference.settle(InferenceEnd::Failed("it ended without a finish".to_owned()));
            }
        }
        Poll::Ready(next)
    }
}

#[cfg(test)]
#[path = "recorded_engine_tests.rs"]
mod tests;

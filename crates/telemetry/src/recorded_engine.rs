//! Wraps an engine: reserves what a call is expected to cost, records every inference once, however it ends, and publishes it.
//!
//! One wrapper per run, so that direct answers, streams and each turn of an agent use the same code.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use async_trait::async_trait;
use hob_core::token_estimate::{tokens_of, whole_prompt_tokens};
use hob_core::{
    AnswerDefaults, CompletionRequest, DetokenizeRequest, EmbedInputs, EmbedRequest, Embeddings, Engine,
    EngineError, Event, GenerateRequest, Generation, GenerationStream, MaxTokens, MediaAnswer, MediaRequest,
    MediaTask, ModelInfo, PlannedCall, Prompt, RerankRequest, Reranking, TokenizeRequest, Tokenized, Usage,
};
use hob_net::chosen_host::{HostNote, noting_host};
use hob_net::trace_context::{current, within};

use crate::inference_in_progress::{InferenceInProgress, RecordContext, RecordedMedia};
use crate::trace::{Span, SpanKind, provider};

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

/// The tokens of all answers of a call together.
#[derive(Debug, Clone, Copy)]
struct AnswerLimit {
    /// `None` if there is no limit.
    most: Option<u64>,
    /// How far Hob may lower it; `None` if the caller set it.
    lowest: Option<u64>,
}

impl AnswerLimit {
    const NO_ANSWER: AnswerLimit = AnswerLimit { most: Some(0), lowest: None };

    fn new(most: Option<u32>, answers: u32, is_callers: bool) -> Self {
        let answers = u64::from(answers);
        AnswerLimit {
            most: most.map(|most| u64::from(most).saturating_mul(answers)),
            lowest: (!is_callers).then_some(answers),
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

    /// Reserves what the call is expected to cost its key, and begins it.
    async fn begin(
        &self,
        operation: Operation,
        model: &str,
        prompt_estimate: u64,
        limit: AnswerLimit,
    ) -> Result<InferenceInProgress, EngineError> {
        let reservation = match self.context.key.as_ref().and_then(|key| key.spending.as_ref()) {
            None => None,
            Some(spending) => {
                let engine = self.engine.key();
                let call = PlannedCall {
                    engine,
                    model,
                    prompt_tokens: prompt_estimate,
                    completion_tokens: limit.most,
                    lowest_completion: limit.lowest,
                };
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
            host: (!self.engine.members().is_empty()).then(HostNote::default),
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
        let (prompt, limit) = (whole_prompt_tokens(request), answer_limit(request));
        let inference = self.begin(Operation::Generate, &request.model, prompt, limit).await?;
        let request = lowered(request, &inference);
        inference.whole(self.engine.generate(&request)).await
    }

    async fn stream(&self, request: &GenerateRequest) -> Result<GenerationStream, EngineError> {
        let (prompt, limit) = (whole_prompt_tokens(request), answer_limit(request));
        let inference = self.begin(Operation::Stream, &request.model, prompt, limit).await?;
        let request = lowered(request, &inference);
        inference.streamed(self.engine.stream(&request)).await
    }

    async fn complete(&self, request: &CompletionRequest) -> Result<Generation, EngineError> {
        let (prompt, limit) = (completion_tokens(request), text_limit(request));
        let inference = self.begin(Operation::Complete, &request.model, prompt, limit).await?;
        let request = lowered_text(request, &inference);
        inference.whole(self.engine.complete(&request)).await
    }

    async fn stream_completion(&self, request: &CompletionRequest) -> Result<GenerationStream, EngineError> {
        let (prompt, limit) = (completion_tokens(request), text_limit(request));
        let inference = self.begin(Operation::StreamCompletion, &request.model, prompt, limit).await?;
        let request = lowered_text(request, &inference);
        inference.streamed(self.engine.stream_completion(&request)).await
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
        let mut inference = self
            .begin(Operation::Rerank, &request.model, tokens_of(bytes as u64), AnswerLimit::NO_ANSWER)
            .await?;
        let asked = noting_host(inference.host.clone(), self.engine.rerank(request));
        let answered = within(inference.span.trace_parent(), asked).await;
        let mut reranking = answered.inspect_err(|error| inference.fail(error))?;
        inference.read_only(&mut reranking.prompt_tokens);
        Ok(reranking)
    }

    /// An embedding has no completion tokens.
    async fn embed(&self, request: &EmbedRequest) -> Result<Embeddings, EngineError> {
        let tokens = match &request.inputs {
            EmbedInputs::Texts(texts) => tokens_of(texts.iter().map(|text| text.len() as u64).sum()),
            EmbedInputs::Tokens(lists) => lists.iter().map(|tokens| tokens.len() as u64).sum(),
        };
        let mut inference =
            self.begin(Operation::Embed, &request.model, tokens, AnswerLimit::NO_ANSWER).await?;
        let asked = noting_host(inference.host.clone(), self.engine.embed(request));
        let answered = within(inference.span.trace_parent(), asked).await;
        let mut embeddings = answered.inspect_err(|error| inference.fail(error))?;
        inference.read_only(&mut embeddings.prompt_tokens);
        Ok(embeddings)
    }

    /// Recorded when its last byte has come. Sound and pictures have no token counts.
    async fn media(&self, request: &MediaRequest) -> Result<MediaAnswer, EngineError> {
        let mut inference =
            self.begin(Operation::Media(request.task), &request.model, 0, AnswerLimit::NO_ANSWER).await?;
        inference.usage = Some(Usage {
            prompt_tokens: 0,
            completion_tokens: 0,
            cached_tokens: None,
            reasoning_tokens: None,
            load_time: None,
        });
        let asked = noting_host(inference.host.clone(), self.engine.media(request));
        let answered = within(inference.span.trace_parent(), asked).await;
        let MediaAnswer { content_type, body } = answered.inspect_err(|error| inference.fail(error))?;
        Ok(MediaAnswer { content_type, body: Box::pin(RecordedMedia { body, inference }) })
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

fn answer_limit(request: &GenerateRequest) -> AnswerLimit {
    AnswerLimit::new(request.max_tokens(), request.answers(), request.max_tokens.is_some())
}

fn text_limit(request: &CompletionRequest) -> AnswerLimit {
    match request.prompt_only {
        true => AnswerLimit::NO_ANSWER,
        false => AnswerLimit::new(request.max_tokens(), request.answers(), request.max_tokens.is_some()),
    }
}

/// The request with the limit that its key has left.
fn lowered<'a>(request: &'a GenerateRequest, inference: &InferenceInProgress) -> Cow<'a, GenerateRequest> {
    match lowered_default(request.defaults, request.answers(), inference) {
        None => Cow::Borrowed(request),
        Some(defaults) => Cow::Owned(GenerateRequest { defaults, ..request.clone() }),
    }
}

fn lowered_text<'a>(
    request: &'a CompletionRequest,
    inference: &InferenceInProgress,
) -> Cow<'a, CompletionRequest> {
    match lowered_default(request.defaults, request.answers(), inference) {
        None => Cow::Borrowed(request),
        Some(defaults) => Cow::Owned(CompletionRequest { defaults, ..request.clone() }),
    }
}

/// The defaults with the limit of each answer; `None` if nothing was lowered.
fn lowered_default(
    defaults: AnswerDefaults,
    answers: u32,
    inference: &InferenceInProgress,
) -> Option<AnswerDefaults> {
    let most = inference.reservation.as_ref()?.lowered_completion()? / u64::from(answers);
    let most = MaxTokens::new(i64::try_from(most).ok()?).ok()?;
    Some(AnswerDefaults { max_tokens: Some(most), ..defaults })
}

#[cfg(test)]
#[path = "recorded_engine_tests.rs"]
mod tests;

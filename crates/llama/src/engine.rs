//! The engine: llama.cpp in this process.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt};
use hob_core::{
    AnswerWarning, Collector, CompletionRequest, ComputeDevice, Cut, Delta, DeltaStream, DetokenizeRequest,
    EmbedRequest, Embeddings, Engine, EngineError, GenerateRequest, Generation, GenerationStream, LogScope,
    ModelCapabilities, ModelInfo, ModelKind, RerankRequest, Reranking, RunningModel, TokenizeInput,
    TokenizeRequest, Tokenized, Usage,
};
use hob_models::{StoredModel, StoredProjector, catalogue};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use crate::backends::{backend, is_started, look_in};
use crate::batching::Order;
use crate::cards::cards;
use crate::constraint::schema_field;
use crate::embedding_input::Texts;
use crate::error::{KEY, bad_request, busy, interrupted, unusable};
use crate::grammar_thread;
use crate::job::{EmbedJob, Job, VectorForm, WarmJob};
use crate::load_queue::{QueuePlace, seconds};
use crate::media;
use crate::model_cache::{Lease, ModelCache};
use crate::model_thread::Handle;
use crate::options::LlamaOptions;
use crate::prompt::{Prepared, prompt_of};
use crate::question::{Question, blocking, encode_files, read};
use crate::rerank;
use crate::tokens;

/// Attempts at an answer whose schema is not completely enforced by a grammar.
const ATTEMPTS: u64 = 3;

/// The temperature of further attempts, which would otherwise be the same.
const RETRY_TEMPERATURE: f32 = 0.7;

/// A token gives at most a few deltas: text that was held back, the start of a call, its arguments.
const PIECES_PER_TOKEN: usize = 4;

/// Dropping it waits until the models are unloaded.
pub struct LlamaEngine {
    pub(crate) cache: Arc<ModelCache>,
}

impl LlamaEngine {
    pub fn new(options: LlamaOptions) -> Self {
        if let Some(directory) = &options.backends {
            look_in(directory);
        }
        LlamaEngine { cache: ModelCache::new(options) }
    }

    /// The ids of the loaded models.
    pub fn loaded_models(&self) -> Vec<String> {
        self.cache.loaded()
    }

    /// The processed tokens of the loaded models, of prompts and answers.
    pub fn computed_tokens(&self) -> u64 {
        self.cache.counted(|loaded| Some(&loaded.computed))
    }

    /// The tokens of answers that the loaded models did not generate one by one, because they were guessed.
    pub fn guessed_tokens(&self) -> u64 {
        self.cache.counted(|loaded| Some(&loaded.guessed))
    }

    /// The tokens that draft models guessed for the loaded models, and those of them that were right.
    pub fn drafted_tokens(&self) -> (u64, u64) {
        let guessed = self.cache.counted(|loaded| Some(&loaded.draft.as_ref()?.guessed));
        let right = self.cache.counted(|loaded| Some(&loaded.draft.as_ref()?.right));
        (guessed, right)
    }

    /// How often a model was loaded so far.
    pub fn loads(&self) -> u64 {
        self.cache.loads()
    }

    /// Sends a request to its model; the answer is a stream.
    async fn start(&self, question: Question) -> Result<GenerationStream, EngineError> {
        let began = Instant::now();
        let (handle, lease, waited) = self.cache.acquire(question.model()).await?;
        let load_time = began.elapsed();
        if handle.loaded.embeds_only {
            return Err(bad_request(
                format!("'{}' is an embedding model and writes no answers", question.model()),
                Some("model"),
            ));
        }
        let queued = waited.or_else(|| position_in_queue(&handle));
        let place = place_in_queue(&handle)?;
        let ignored = question.ignored();
        let (question, files) = question.encoded(&handle.loaded).await?;
        let mut prepared = read(&handle.loaded, question, files).await?;
        let mut warnings = std::mem::take(&mut prepared.ask.warnings);
        warnings.extend(ignored);
        warnings.extend(
            queued.map(|place| AnswerWarning::Queued {
                position: place.position,
                seconds: seconds(place.wait),
            }),
        );
        let deltas = if prepared.constraint.check.is_some() {
            checked(&handle, lease, prepared, place).await?
        } else {
            stream(write(&handle, prepared, place)?, lease)
        };
        let deltas = deltas.map_ok(move |delta| with_load_time(delta, load_time)).boxed();
        Ok(GenerationStream { warnings, deltas })
    }

    /// Collects a complete answer.
    async fn whole(&self, question: Question) -> Result<Generation, EngineError> {
        let model = question.model().to_owned();
        let GenerationStream { warnings, mut deltas } = self.start(question).await?;
        let mut collector = Collector::default();
        while let Some(delta) = deltas.next().await {
            collector.push(delta?);
        }
        let whole = collector.finish(model);
        let whole = whole.ok_or_else(|| interrupted("an answer is incomplete"))?;
        Ok(Generation { warnings, ..whole })
    }

    /// The vectors or the scores of texts.
    async fn vectors(
        &self,
        handle: &Handle,
        place: OwnedSemaphorePermit,
        (inputs, form): (Vec<Vec<i32>>, VectorForm),
    ) -> Result<Vec<Vec<f32>>, EngineError> {
        let (reply, vectors) = oneshot::channel();
        send(handle, Order::Embed(EmbedJob { inputs, form, reply, _place: place }))?;
        vectors.await.unwrap_or_else(|_| Err(interrupted("the model's thread ended")))
    }
}

fn with_load_time(delta: Delta, load_time: Duration) -> Delta {
    match delta {
        Delta::Done { usage: Some(usage) } => {
            Delta::Done { usage: Some(Usage { load_time: Some(load_time), ..usage }) }
        }
        delta => delta,
    }
}

/// Sends a prepared request to its model.
fn write(
    handle: &Handle,
    prepared: Prepared,
    place: OwnedSemaphorePermit,
) -> Result<mpsc::Receiver<Result<Delta, EngineError>>, EngineError> {
    let size = handle.loaded.context_size;
    let longest = prepared.ask.max_tokens.min(size.context as usize - prepared.prompt.len());
    let answers = prepared.ask.answers;
    let needed = prepared.prompt.len() + longest * answers;
    let cells = size.cells as usize;
    if needed > cells {
        return Err(bad_request(
            format!(
                "{answers} answers of up to {longest} tokens need {needed} tokens with the prompt, \
                 and '{}' has room for {cells}",
                handle.loaded.id
            ),
            Some("n"),
        ));
    }
    let (output, deltas) = mpsc::channel((longest * PIECES_PER_TOKEN + 16) * answers);
    let job = Job { prepared, output, longest, place, log_scope: LogScope::current() };
    send(handle, Order::Write(Box::new(job)))?;
    Ok(deltas)
}

/// Answers whose schema is not completely enforced by a grammar: each is checked when it is complete, and generated again a few
/// times. Nothing is sent before that.
async fn checked(
    handle: &Handle,
    lease: Lease,
    prepared: Prepared,
    place: OwnedSemaphorePermit,
) -> Result<DeltaStream, EngineError> {
    let mut place = Some(place);
    let mut violation = String::new();
    for attempt in 0..ATTEMPTS {
        let mut again = prepared.clone();
        if attempt > 0 {
            let sampling = &mut again.ask.sampling;
            sampling.seed = sampling.seed.wrapping_add(attempt << 32);
            sampling.temperature = sampling.temperature.max(RETRY_TEMPERATURE);
        }
        let place = place.take().map_or_else(|| place_in_queue(handle), Ok)?;
        let mut deltas = write(handle, again, place)?;
        let mut told = Vec::new();
        let mut collector = Collector::default();
        loop {
            let delta = deltas.recv().await.ok_or_else(|| interrupted("the model's thread ended"))??;
            told.push(delta.clone());
            let done = matches!(delta, Delta::Done { .. });
            collector.push(delta);
            if done {
                break;
            }
        }
        let whole =
            collector.finish(&handle.loaded.id).ok_or_else(|| interrupted("an answer is incomplete"))?;
        let Some(check) = prepared.constraint.check.clone() else { break };
        match grammar_thread::check(move || check.violation(&whole)).await? {
            None => {
                drop(lease);
                return Ok(futures::stream::iter(told.into_iter().map(Ok)).boxed());
            }
            Some(wrong) => violation = wrong,
        }
        tracing::debug!(model = %handle.loaded.id, attempt, violation, "an answer does not follow its schema");
    }
    Err(EngineError::Malformed {
        engine: KEY.into(),
        reason: format!(
            "none of {ATTEMPTS} answers of '{}' follows the schema: {violation}",
            handle.loaded.id
        ),
    })
}

fn place_in_queue(handle: &Handle) -> Result<OwnedSemaphorePermit, EngineError> {
    Arc::clone(&handle.queue).try_acquire_owned().map_err(|_| {
        let wait = handle.pace.answers(handle.places, handle.loaded.parallel);
        busy(format!("the queue of the model '{}' is full; try again later", handle.loaded.id), seconds(wait))
    })
}

/// The place of the next request, if all slots are taken.
fn position_in_queue(handle: &Handle) -> Option<QueuePlace> {
    let slots = handle.loaded.parallel;
    let taken = handle.places.saturating_sub(handle.queue.available_permits());
    let position = (taken + 1).checked_sub(slots).filter(|position| *position > 0)?;
    Some(QueuePlace { position, wait: handle.pace.answers(position, slots) })
}

fn send(handle: &Handle, order: Order) -> Result<(), EngineError> {
    handle
        .orders
        .send(order)
        .map_err(|_| interrupted(format!("the thread of the model '{}' ended", handle.loaded.id)))
}

/// The deltas until the end. Dropping it stops the worker.
fn stream(deltas: mpsc::Receiver<Result<Delta, EngineError>>, lease: Lease) -> DeltaStream {
    let state = Some((deltas, lease));
    futures::stream::unfold(state, |state| async move {
        let (mut deltas, lease) = state?;
        match deltas.recv().await {
            Some(Ok(Delta::Done { usage })) => Some((Ok(Delta::Done { usage }), None)),
            Some(Ok(delta)) => Some((Ok(delta), Some((deltas, lease)))),
            Some(Err(error)) => Some((Err(error), None)),
            None => Some((Err(interrupted("the model's thread ended")), None)),
        }
    })
    .boxed()
}

#[async_trait]
impl Engine for LlamaEngine {
    fn key(&self) -> &str {
        KEY
    }

    fn address(&self) -> &str {
        ""
    }

    async fn generate(&self, request: &GenerateRequest) -> Result<Generation, EngineError> {
        self.whole(Question::Conversation(Arc::new(request.clone()))).await
    }

    async fn stream(&self, request: &GenerateRequest) -> Result<GenerationStream, EngineError> {
        self.start(Question::Conversation(Arc::new(request.clone()))).await
    }

    async fn complete(&self, request: &CompletionRequest) -> Result<Generation, EngineError> {
        self.whole(Question::Text(Arc::new(request.clone()))).await
    }

    async fn stream_completion(&self, request: &CompletionRequest) -> Result<GenerationStream, EngineError> {
        self.start(Question::Text(Arc::new(request.clone()))).await
    }

    async fn tokenize(&self, request: &TokenizeRequest) -> Result<Tokenized, EngineError> {
        let (handle, _lease, _) = self.cache.acquire(&request.model).await?;
        let (loaded, mut request) = (Arc::clone(&handle.loaded), request.clone());
        let mut files = Vec::new();
        if let TokenizeInput::Conversation(conversation) = &mut request.input
            && media::has_attachments(conversation)
        {
            let _place = place_in_queue(&handle)?;
            let whole = std::mem::take(&mut **conversation);
            (**conversation, files) = encode_files(&loaded, Arc::new(whole)).await?;
        }
        blocking(move || tokens::split(&loaded, &request, &files)).await
    }

    async fn detokenize(&self, request: &DetokenizeRequest) -> Result<String, EngineError> {
        let (handle, _lease, _) = self.cache.acquire(&request.model).await?;
        let (loaded, request) = (Arc::clone(&handle.loaded), request.clone());
        blocking(move || tokens::join(&loaded, &request)).await
    }

    async fn rerank(&self, request: &RerankRequest) -> Result<Reranking, EngineError> {
        let (handle, _lease, _) = self.cache.acquire(&request.model).await?;
        let place = place_in_queue(&handle)?;
        let (loaded, request) = (Arc::clone(&handle.loaded), request.clone());
        let inputs = blocking(move || rerank::pairs(&loaded, &request)).await?;
        let prompt_tokens = inputs.iter().map(|tokens| tokens.len() as u64).sum();
        let vectors = self.vectors(&handle, place, (inputs, VectorForm::Raw)).await?;
        Ok(rerank::ranking(&handle.loaded.id, &vectors, prompt_tokens))
    }

    /// Vectors of length one.
    async fn embed(&self, request: &EmbedRequest) -> Result<Embeddings, EngineError> {
        let began = Instant::now();
        let (handle, _lease, _) = self.cache.acquire(&request.model).await?;
        let load_time = Some(began.elapsed());
        let place = place_in_queue(&handle)?;
        let (loaded, request) = (Arc::clone(&handle.loaded), request.clone());
        let texts = blocking(move || Texts::read(&loaded, &request)).await?;
        let prompt_tokens = texts.inputs.iter().map(|tokens| tokens.len() as u64).sum();
        let vectors = self.vectors(&handle, place, (texts.inputs, VectorForm::Normalised)).await?;
        Ok(Embeddings {
            model: handle.loaded.id.clone(),
            vectors,
            prompt_tokens: Some(prompt_tokens),
            cut: Cut::Inputs(texts.cut),
            load_time,
        })
    }

    /// All files. Broken ones are last, and a request for one explains its problem.
    async fn list_models(&self) -> Result<Vec<ModelInfo>, EngineError> {
        let directory = self.cache.directory.clone();
        let mut models = tokio::task::spawn_blocking(move || directory.list())
            .await
            .map_err(|error| unusable(error.to_string()))?
            .map_err(|error| unusable(error.to_string()))?;
        models.sort_by_key(|model| model.problem.is_some());
        Ok(models.into_iter().map(describe).collect())
    }

    /// The capabilities of a loaded model come from its tokens and template.
    async fn describe(&self, model: &ModelInfo) -> Option<ModelInfo> {
        let loaded = self.cache.loaded_model(&model.id)?;
        let capabilities = model.capabilities.or(loaded.capabilities());
        Some(ModelInfo { capabilities, context: Some(loaded.context_size.context.into()), ..model.clone() })
    }

    /// Healthy only with a model that can answer.
    async fn health(&self) -> bool {
        let directory = self.cache.directory.clone();
        let answers = |model: &StoredModel| model.problem.is_none() && kind_of(model) == ModelKind::Text;
        let can_answer = move || match directory.list() {
            Ok(models) => models.iter().any(answers) && backend().is_ok(),
            Err(_) => false,
        };
        tokio::task::spawn_blocking(can_answer).await.unwrap_or(false)
    }

    fn means(&self, asked: &str, listed: &str) -> bool {
        let asked = asked.strip_suffix(".gguf").unwrap_or(asked);
        asked == listed || catalogue::find(asked).is_some_and(|entry| entry.name == listed)
    }

    async fn prepare(&self, model: &str) -> Result<(), EngineError> {
        self.cache.acquire(model).await.map(drop)
    }

    async fn unload(&self, model: &str) -> Result<(), EngineError> {
        self.cache.unload(model).await
    }

    async fn running_models(&self) -> Result<Vec<RunningModel>, EngineError> {
        Ok(self.cache.running())
    }

    /// Starts nothing: a driver takes memory of its card for every program that asks it.
    async fn devices(&self) -> Vec<ComputeDevice> {
        if !is_started() {
            return Vec::new();
        }
        let cards = tokio::task::spawn_blocking(cards).await.unwrap_or_default();
        cards.into_iter().map(|card| card.device).collect()
    }

    /// Reads the prompt while the model is idle, until the next request. Dropping the future cancels it.
    async fn warm(&self, request: &GenerateRequest) -> Result<(), EngineError> {
        let (handle, _lease, _) = self.cache.acquire(&request.model).await?;
        if handle.loaded.embeds_only {
            return Ok(());
        }
        let (loaded, mut request, mut files) = (Arc::clone(&handle.loaded), request.clone(), Vec::new());
        if media::has_attachments(&request) {
            let _place = place_in_queue(&handle)?;
            (request, files) = encode_files(&loaded, Arc::new(request)).await?;
        }
        let read = move || {
            if schema_field(&request).is_some() {
                // The first grammar needs it, and creating it takes a while.
                loaded.vocabulary()?;
            }
            let prompt = prompt_of(&loaded, &request, &files)?;
            // Vectors are read when they are needed, which is fast once they are encoded.
            Ok(prompt.into_iter().take_while(|token| !media::is_stand_in(*token)).collect())
        };
        let prompt = blocking(read).await?;
        let (done, finished) = oneshot::channel();
        send(&handle, Order::Warm(WarmJob { prompt, done }))?;
        // Dropped when another request came.
        let _ = finished.await;
        Ok(())
    }
}

fn kind_of(model: &StoredModel) -> ModelKind {
    match &model.header {
        Some(header) if header.is_embedding => ModelKind::Embedding,
        _ => ModelKind::Text,
    }
}

fn describe(model: StoredModel) -> ModelInfo {
    let header = model.header.as_deref();
    ModelInfo {
        parameters: (model.parameters > 0).then_some(model.parameters),
        context: header.and_then(|header| header.context_length),
        size: Some(model.size),
        quantization: header.and_then(|header| header.quantization).map(str::to_owned),
        kind: kind_of(&model),
        capabilities: match kind_of(&model) {
            // Tools are spelled out for a model whose template knows none.
            ModelKind::Text => {
                let can =
                    |sense: fn(&StoredProjector) -> bool| Some(model.projector.as_ref().is_some_and(sense));
                ModelCapabilities {
                    vision: can(|projector| projector.sees),
                    audio: can(|projector| projector.hears),
                    tools: Some(true),
                    ..ModelCapabilities::default()
                }
            }
            ModelKind::Embedding => ModelCapabilities::default(),
        },
        ..ModelInfo::named(model.id)
    }
}

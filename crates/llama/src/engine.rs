//! The engine: llama.cpp in this process.

use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use hob_core::{
    Collector, Cut, Delta, DeltaStream, EmbedRequest, Embeddings, Engine, EngineError, GenerateRequest,
    Generation, GenerationStream, ModelInfo, ModelKind,
};
use hob_models::StoredModel;
use hob_models::tuned::{KeepTuned, TuneReport};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use crate::constraint::schema_field;
use crate::error::{KEY, bad_request, busy, interrupted, unusable};
use crate::grammar_thread;
use crate::job::{EmbedJob, Job, WarmJob};
use crate::loaded_model::{LoadedModel, backend};
use crate::model_cache::{Handle, Lease, ModelCache};
use crate::options::LlamaOptions;
use crate::prompt::{Prepared, prepare, prompt_of};
use crate::texts::Texts;
use crate::tune::tune_for_caller;
use crate::worker::Order;

/// Longer conversations are tokenised on a blocking thread.
const LONG: usize = 32 * 1024;

/// Attempts at an answer whose schema is not completely enforced by a grammar.
const ATTEMPTS: u64 = 3;

/// The temperature of further attempts, which would otherwise be the same.
const RETRY_TEMPERATURE: f32 = 0.7;

/// A token gives at most a few deltas: text that was held back, the start of a call, its arguments.
const PIECES_PER_TOKEN: usize = 4;

/// Dropping it waits until the models are unloaded.
pub struct LlamaEngine {
    cache: Arc<ModelCache>,
}

impl LlamaEngine {
    pub fn new(options: LlamaOptions) -> Self {
        LlamaEngine { cache: ModelCache::new(options) }
    }

    /// The ids of the loaded models.
    pub fn loaded_models(&self) -> Vec<String> {
        self.cache.loaded()
    }

    /// The processed tokens of the loaded models, of prompts and answers.
    pub fn computed_tokens(&self) -> u64 {
        self.cache.computed()
    }

    /// Measures the tuned form of a model. If it is kept, it is used when the model is loaded next. Dropping the future cancels
    /// it.
    pub async fn tune(&self, model: &str, keep: KeepTuned) -> Result<TuneReport, EngineError> {
        let stored = self.cache.find(model.strip_suffix(".gguf").unwrap_or(model)).await?;
        tune_for_caller(stored, self.cache.options().clone(), keep).await
    }

    /// Sends a request to its model; the answer is a stream.
    async fn start(&self, request: &GenerateRequest) -> Result<GenerationStream, EngineError> {
        let (handle, lease) = self.cache.acquire(&request.model).await?;
        if handle.loaded.embeds_only {
            return Err(bad_request(
                format!("'{}' is an embedding model and cannot answer", request.model),
                Some("model"),
            ));
        }
        let place = place_in_queue(&handle)?;
        let mut prepared = read(&handle.loaded, request).await?;
        let warnings = std::mem::take(&mut prepared.ask.warnings);
        let deltas = if prepared.constraint.check.is_some() {
            checked(&handle, lease, prepared, place).await?
        } else {
            stream(write(&handle, prepared, place)?, lease)
        };
        Ok(GenerationStream { warnings, deltas })
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
    let job = Job { prepared, output, longest, place };
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
        busy(format!("the queue of the model '{}' is full; try again in a moment", handle.loaded.id), 1)
    })
}

fn send(handle: &Handle, order: Order) -> Result<(), EngineError> {
    handle
        .orders
        .send(order)
        .map_err(|_| interrupted(format!("the thread of the model '{}' ended", handle.loaded.id)))
}

/// Renders, tokenises and reads the schemas of a request.
async fn read(loaded: &Arc<LoadedModel>, request: &GenerateRequest) -> Result<Prepared, EngineError> {
    if let Some(field) = schema_field(request) {
        // Created once per model, outside the time limit of the schema.
        let warm = Arc::clone(loaded);
        tokio::task::spawn_blocking(move || warm.vocabulary().map(drop))
            .await
            .map_err(|error| interrupted(format!("cannot read the vocabulary: {error}")))??;
        let (loaded, request) = (Arc::clone(loaded), request.clone());
        return grammar_thread::run(field, move || prepare(&loaded, &request)).await?;
    }
    let length: usize = request.messages.iter().map(|message| message.content.text().len()).sum();
    if length <= LONG {
        return prepare(loaded, request);
    }
    let (loaded, request) = (Arc::clone(loaded), request.clone());
    tokio::task::spawn_blocking(move || prepare(&loaded, &request))
        .await
        .map_err(|error| interrupted(format!("cannot read the request: {error}")))?
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
        let GenerationStream { warnings, mut deltas } = self.start(request).await?;
        let mut collector = Collector::default();
        while let Some(delta) = deltas.next().await {
            collector.push(delta?);
        }
        let whole = collector.finish(request.model.as_str());
        let whole = whole.ok_or_else(|| interrupted("an answer is incomplete"))?;
        Ok(Generation { warnings, ..whole })
    }

    async fn stream(&self, request: &GenerateRequest) -> Result<GenerationStream, EngineError> {
        self.start(request).await
    }

    /// Vectors of length one.
    async fn embed(&self, request: &EmbedRequest) -> Result<Embeddings, EngineError> {
        let (handle, _lease) = self.cache.acquire(&request.model).await?;
        let place = place_in_queue(&handle)?;
        let (loaded, request) = (Arc::clone(&handle.loaded), request.clone());
        let texts = tokio::task::spawn_blocking(move || Texts::read(&loaded, &request))
            .await
            .map_err(|error| interrupted(format!("cannot read the texts: {error}")))??;
        let prompt_tokens = texts.inputs.iter().map(|tokens| tokens.len() as u64).sum();
        let (reply, vectors) = oneshot::channel();
        send(&handle, Order::Embed(EmbedJob { inputs: texts.inputs, reply, _place: place }))?;
        let vectors = vectors.await.unwrap_or_else(|_| Err(interrupted("the model's thread ended")))?;
        Ok(Embeddings {
            model: handle.loaded.id.clone(),
            vectors,
            prompt_tokens: Some(prompt_tokens),
            cut: Cut::Inputs(texts.cut),
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

    /// Healthy only with a model that can answer.
    async fn health(&self) -> bool {
        let directory = self.cache.directory.clone();
        let listed = tokio::task::spawn_blocking(move || directory.list()).await;
        let answers = |model: &StoredModel| model.problem.is_none() && kind_of(model) == ModelKind::Text;
        let can_answer = matches!(listed, Ok(Ok(models)) if models.iter().any(answers));
        can_answer && backend().is_ok()
    }

    fn means(&self, asked: &str, listed: &str) -> bool {
        asked.strip_suffix(".gguf").unwrap_or(asked) == listed
    }

    async fn prepare(&self, model: &str) -> Result<(), EngineError> {
        self.cache.acquire(model).await.map(drop)
    }

    /// Reads the prompt while the model is idle, until the next request. Dropping the future cancels it.
    async fn warm(&self, request: &GenerateRequest) -> Result<(), EngineError> {
        let (handle, _lease) = self.cache.acquire(&request.model).await?;
        if handle.loaded.embeds_only {
            return Ok(());
        }
        let (loaded, request) = (Arc::clone(&handle.loaded), request.clone());
        let read = move || {
            if schema_field(&request).is_some() {
                // The first grammar needs it, and creating it takes a while.
                loaded.vocabulary()?;
            }
            prompt_of(&loaded, &request)
        };
        let prompt = tokio::task::spawn_blocking(read)
            .await
            .map_err(|error| interrupted(format!("cannot read the request: {error}")))??;
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
        ..ModelInfo::named(model.id)
    }
}

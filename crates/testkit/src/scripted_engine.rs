//! An engine inside the test, with scripted answers.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::{StreamExt, stream};
use hob_core::{
    AnswerWarning, Collector, CompletionRequest, Cut, Delta, DetokenizeRequest, EmbedInputs, EmbedRequest,
    Embeddings, Engine, EngineError, FinishReason, GenerateRequest, Generation, GenerationStream, ModelInfo,
    ModelKind, RelevanceScore, RerankRequest, Reranking, RunningModel, TokenizeInput, TokenizeRequest,
    Tokenized, Usage,
};

type Script = dyn Fn(&GenerateRequest) -> Vec<Result<Delta, EngineError>> + Send + Sync;

/// The engine. Its key is `scripted` and its only model `m`, unless a test sets others.
pub struct ScriptedEngine {
    key: String,
    models: Vec<ModelInfo>,
    lists_every_model: bool,
    warnings: Vec<AnswerWarning>,
    script: Box<Script>,
    /// The pieces between two pauses; zero for no pauses.
    pieces_at_once: usize,
    requests: Mutex<Vec<GenerateRequest>>,
    embed_requests: Mutex<Vec<EmbedRequest>>,
    /// What was loaded and unloaded.
    memory: Mutex<Vec<String>>,
    /// Why no model can be loaded now.
    load_failure: Mutex<Option<String>>,
    completion_requests: Mutex<Vec<CompletionRequest>>,
    reranks: bool,
    lists: AtomicUsize,
    healthy: AtomicBool,
    gone: AtomicBool,
}

impl ScriptedEngine {
    /// Gives these pieces for every request.
    pub fn new(
        script: impl Fn(&GenerateRequest) -> Vec<Result<Delta, EngineError>> + Send + Sync + 'static,
    ) -> Self {
        ScriptedEngine {
            key: "scripted".to_owned(),
            models: vec![ModelInfo::named("m")],
            lists_every_model: true,
            warnings: Vec::new(),
            script: Box::new(script),
            pieces_at_once: 0,
            requests: Mutex::new(Vec::new()),
            embed_requests: Mutex::new(Vec::new()),
            memory: Mutex::new(Vec::new()),
            load_failure: Mutex::new(None),
            completion_requests: Mutex::new(Vec::new()),
            reranks: false,
            lists: AtomicUsize::new(0),
            healthy: AtomicBool::new(true),
            gone: AtomicBool::new(false),
        }
    }

    /// Says these words, one piece each, and stops.
    pub fn saying(words: &'static [&'static str]) -> Self {
        Self::new(move |_| {
            let usage = Usage {
                prompt_tokens: 3,
                completion_tokens: words.len() as u64,
                cached_tokens: None,
                reasoning_tokens: None,
                load_time: None,
            };
            let mut deltas: Vec<_> = words.iter().map(|word| Ok(Delta::text(*word))).collect();
            deltas.push(Ok(Delta::Finish { choice: 0, reason: FinishReason::Stop }));
            deltas.push(Ok(Delta::Done { usage: Some(usage) }));
            deltas
        })
    }

    /// Pauses for a millisecond before every `pieces` of a stream, as an engine that computes them does.
    pub fn paced(mut self, pieces: usize) -> Self {
        self.pieces_at_once = pieces;
        self
    }

    /// The same under another key.
    pub fn called(mut self, key: &str) -> Self {
        self.key = key.to_owned();
        self
    }

    /// It knows models that it does not list.
    pub fn with_unlisted_models(mut self) -> Self {
        self.lists_every_model = false;
        self
    }

    pub fn with_models(mut self, ids: &[&str]) -> Self {
        self.models = ids.iter().map(|id| ModelInfo::named(*id)).collect();
        self
    }

    /// Lists these before the others.
    pub fn with_embedding_models(mut self, ids: &[&str]) -> Self {
        let embedding = |id: &&str| ModelInfo { kind: ModelKind::Embedding, ..ModelInfo::named(*id) };
        self.models.splice(..0, ids.iter().map(embedding));
        self
    }

    /// Every answer carries these.
    pub fn with_warnings(mut self, warnings: &[AnswerWarning]) -> Self {
        self.warnings = warnings.to_vec();
        self
    }

    /// From now on it cannot be reached, or it can again.
    pub fn set_gone(&self, gone: bool) {
        self.gone.store(gone, Ordering::Relaxed);
    }

    /// From now on no model can be loaded, for this reason, or models can be loaded again.
    pub fn set_load_failure(&self, reason: Option<&str>) {
        *self.load_failure.lock().unwrap_or_else(PoisonError::into_inner) = reason.map(str::to_owned);
    }

    pub fn set_healthy(&self, healthy: bool) {
        self.healthy.store(healthy, Ordering::Relaxed);
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<GenerateRequest> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The requests for embeddings so far.
    pub fn embed_requests(&self) -> Vec<EmbedRequest> {
        self.embed_requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What was loaded and unloaded so far, such as `load m`.
    pub fn loaded(&self) -> Vec<String> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// It compares texts: the shorter the document, the better.
    pub fn with_rerank(mut self) -> Self {
        self.reranks = true;
        self
    }

    /// The texts to continue so far.
    pub fn completion_requests(&self) -> Vec<CompletionRequest> {
        self.completion_requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How often the models were listed.
    pub fn lists(&self) -> usize {
        self.lists.load(Ordering::Relaxed)
    }

    fn reached(&self) -> Result<(), EngineError> {
        match self.gone.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(EngineError::Unreachable {
                engine: self.key.clone(),
                address: format!("http://{}", self.key),
                reason: "Connection refused".into(),
            }),
        }
    }

    fn answer(&self, request: &GenerateRequest) -> Result<Vec<Result<Delta, EngineError>>, EngineError> {
        self.reached()?;
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
        Ok((self.script)(request))
    }
}

#[async_trait]
impl Engine for ScriptedEngine {
    fn key(&self) -> &str {
        &self.key
    }

    fn address(&self) -> &str {
        ""
    }

    async fn generate(&self, request: &GenerateRequest) -> Result<Generation, EngineError> {
        let mut collector = Collector::default();
        for delta in self.answer(request)? {
            collector.push(delta?);
        }
        let generation = collector.finish(&request.model).ok_or_else(|| EngineError::Interrupted {
            engine: self.key.clone(),
            reason: "the script has no finish".into(),
        })?;
        Ok(Generation { warnings: self.warnings.clone(), ..generation })
    }

    async fn stream(&self, request: &GenerateRequest) -> Result<GenerationStream, EngineError> {
        let (pieces, at_once) = (stream::iter(self.answer(request)?), self.pieces_at_once);
        let deltas = match at_once {
            0 => pieces.boxed(),
            _ => pieces
                .enumerate()
                .then(move |(number, piece)| async move {
                    if number % at_once == 0 {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                    piece
                })
                .boxed(),
        };
        Ok(GenerationStream { warnings: self.warnings.clone(), deltas })
    }

    /// A text is answered by the script as a question would be.
    async fn complete(&self, request: &CompletionRequest) -> Result<Generation, EngineError> {
        self.completion_requests.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
        self.generate(&request.as_question().unwrap_or_else(|| request.settings())).await
    }

    async fn stream_completion(&self, request: &CompletionRequest) -> Result<GenerationStream, EngineError> {
        self.completion_requests.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
        self.stream(&request.as_question().unwrap_or_else(|| request.settings())).await
    }

    /// Every byte is a token.
    async fn tokenize(&self, request: &TokenizeRequest) -> Result<Tokenized, EngineError> {
        let text = match &request.input {
            TokenizeInput::Text { text, .. } => text.clone(),
            TokenizeInput::Conversation(conversation) => {
                conversation.messages.iter().map(|message| message.content.text().into_owned()).collect()
            }
        };
        Ok(Tokenized {
            tokens: text.bytes().map(u32::from).collect(),
            pieces: request.pieces.then(|| text.bytes().map(|byte| vec![byte]).collect()),
            context: Some(2048),
        })
    }

    async fn detokenize(&self, request: &DetokenizeRequest) -> Result<String, EngineError> {
        let bytes: Vec<u8> =
            request.tokens.iter().map(|token| u8::try_from(*token).unwrap_or(b'?')).collect();
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    async fn rerank(&self, request: &RerankRequest) -> Result<Reranking, EngineError> {
        if !self.reranks {
            return Err(EngineError::Unsupported {
                engine: self.key.clone(),
                field: "rerank".into(),
                hint: None,
            });
        }
        let score = |(index, document): (usize, &String)| RelevanceScore {
            index,
            score: 1.0 / (1.0 + document.len() as f64),
        };
        let scores = request.documents.iter().enumerate().map(score).collect();
        Ok(Reranking { model: request.model.clone(), scores, prompt_tokens: Some(7) }.sorted())
    }

    /// A vector has the number of bytes and words of its text; a word is a token. Tokens count as words of one byte.
    async fn embed(&self, request: &EmbedRequest) -> Result<Embeddings, EngineError> {
        self.embed_requests.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
        let sizes: Vec<(usize, usize)> = match &request.inputs {
            EmbedInputs::Texts(texts) => {
                texts.iter().map(|text| (text.len(), text.split_whitespace().count())).collect()
            }
            EmbedInputs::Tokens(lists) => lists.iter().map(|tokens| (tokens.len(), tokens.len())).collect(),
        };
        Ok(Embeddings {
            model: request.model.clone(),
            vectors: sizes.iter().map(|(bytes, words)| vec![*bytes as f32, -0.5, *words as f32]).collect(),
            prompt_tokens: Some(sizes.iter().map(|(_, words)| *words as u64).sum()),
            cut: Cut::NONE,
            load_time: None,
        })
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, EngineError> {
        self.lists.fetch_add(1, Ordering::Relaxed);
        self.reached()?;
        Ok(self.models.clone())
    }

    fn lists_every_model(&self) -> bool {
        self.lists_every_model
    }

    async fn prepare(&self, model: &str) -> Result<(), EngineError> {
        let failure = self.load_failure.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(message) = failure {
            return Err(EngineError::Refused {
                engine: self.key.clone(),
                status: 500,
                message,
                code: None,
                param: Some("model".into()),
                retry_after: None,
            });
        }
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).push(format!("load {model}"));
        Ok(())
    }

    async fn unload(&self, model: &str) -> Result<(), EngineError> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).push(format!("unload {model}"));
        Ok(())
    }

    /// What was loaded and not unloaded since.
    async fn running_models(&self) -> Result<Vec<RunningModel>, EngineError> {
        let mut running: Vec<RunningModel> = Vec::new();
        for step in self.loaded() {
            let (step, id) = step.split_once(' ').unwrap_or_default();
            running.retain(|model| model.id != id);
            if step == "load" {
                running.push(RunningModel {
                    id: id.to_owned(),
                    size: Some(1 << 20),
                    ..RunningModel::default()
                });
            }
        }
        Ok(running)
    }

    async fn health(&self) -> bool {
        self.healthy.load(Ordering::Relaxed) && !self.gone.load(Ordering::Relaxed)
    }
}

//! The memory of the house: made from the configuration, opened when it is first needed, and told to those who may know.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hob_config::{Config, EngineName, MemoryBackendName};
use hob_core::{
    Engine, EventBus, GenerateRequest, Memory, MemoryBackend, MemoryError, MemoryQuery, Message, Passage,
    Role, RunEvents,
};
use hob_memory::context::{Context, context, has_context};
use hob_memory::read::apart::Apart;
use hob_memory::{
    ChunkOptions, ChunkOptionsError, DocumentParts, Documents, Embedder, EmbedderSource, IndexOptions,
    Limits, Purpose,
};
use tokio::sync::OnceCell;

use crate::embedder::open_embedder;
use crate::engines::engines;
use crate::household::{FirstRun, Wishes, choose};

/// The file in the configuration directory. Apart from the record, because it is large and can be made anew.
pub(crate) const FILE: &str = "memory.db";

/// An answer does not wait longer for what the memory knows.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the memory is wired to.
#[derive(Default)]
pub struct MemoryWiring {
    pub bus: EventBus,
    /// Who makes the vectors; `None` to find out when the first is needed.
    pub embedder: Option<Embedder>,
    /// Whether the model that makes them may then be fetched.
    pub first_use: FirstRun,
    /// How files are read that nobody should read inside a server; `None` reads them here.
    pub reader: Option<Apart>,
}

/// The memory, and how much of it questions are answered with.
#[derive(Clone)]
pub struct HouseMemory {
    documents: Arc<Documents>,
    /// `None` when the user does not want that.
    budget: Option<Budget>,
}

#[derive(Debug, Clone, Copy)]
struct Budget {
    passages: usize,
    tokens: usize,
}

impl HouseMemory {
    /// Opens nothing yet. `home` is where Hob keeps its files.
    pub fn new(config: &Config, home: &Path, wiring: MemoryWiring) -> Result<Self, ChunkOptionsError> {
        let settings = &config.memory;
        let budget = Budget { passages: settings.context_passages, tokens: settings.context_tokens };
        let documents = Documents::new(DocumentParts {
            database: home.join(FILE),
            backend: backend(settings.backend),
            options: IndexOptions {
                chunks: ChunkOptions::new(settings.chunk_size, settings.chunk_overlap)?,
                limits: Limits { apart: wiring.reader, ..Limits::default() },
                private: vec![home.canonicalize().unwrap_or_else(|_| home.to_owned())],
            },
            embedders: Arc::new(HouseEmbedder {
                config: config.clone(),
                home: home.to_owned(),
                first_use: wiring.first_use,
                ready: OnceCell::new_with(wiring.embedder),
            }),
            bus: wiring.bus,
        });
        Ok(HouseMemory { documents: Arc::new(documents), budget: settings.context.then_some(budget) })
    }

    pub fn documents(&self) -> &Arc<Documents> {
        &self.documents
    }

    /// For the tools.
    pub(crate) fn contract(&self) -> Arc<dyn Memory> {
        Arc::clone(&self.documents) as Arc<dyn Memory>
    }

    /// Puts what the memory has on the last question into the request, and says what that was. An answer never fails for
    /// want of it.
    pub(crate) async fn recall(&self, request: &mut GenerateRequest, events: &RunEvents) -> Vec<Passage> {
        let (Some(budget), Some(question)) = (self.budget, last_question(&request.messages)) else {
            return Vec::new();
        };
        if has_context(&request.messages) {
            return Vec::new();
        }
        let query = MemoryQuery { text: question, top_k: budget.passages, backend: None };
        let found = match tokio::time::timeout(PATIENCE, self.look_up(query, events)).await {
            Ok(Ok(passages)) => passages,
            Ok(Err(MemoryError::Empty)) => return Vec::new(),
            Ok(Err(error)) => {
                tracing::warn!(%error, "a question is answered without the memory");
                return Vec::new();
            }
            Err(_) => {
                tracing::warn!("the memory is too slow; a question is answered without it");
                return Vec::new();
            }
        };
        let Some(context) = context(&found, budget.tokens) else { return Vec::new() };
        context.put_into(&mut request.messages);
        let Context { passages, .. } = context;
        passages
    }

    /// What has no vectors yet can still be found by its words.
    async fn look_up(&self, query: MemoryQuery, events: &RunEvents) -> Result<Vec<Passage>, MemoryError> {
        match self.documents.search_for(&query, Purpose::Unasked, events).await {
            Err(error) if error.is_about_vectors() => {
                tracing::debug!(%error, "looking by words");
                let by_words = MemoryQuery { backend: Some(MemoryBackend::Sqlite), ..query };
                Ok(self.documents.search_for(&by_words, Purpose::Unasked, events).await?.passages)
            }
            found => Ok(found?.passages),
        }
    }
}

/// Who makes the vectors, found when it is first needed.
struct HouseEmbedder {
    config: Config,
    home: PathBuf,
    first_use: FirstRun,
    ready: OnceCell<Embedder>,
}

#[async_trait]
impl EmbedderSource for HouseEmbedder {
    async fn embedder(&self) -> Result<Embedder, MemoryError> {
        self.ready.get_or_try_init(|| self.open()).await.cloned()
    }
}

impl HouseEmbedder {
    async fn open(&self) -> Result<Embedder, MemoryError> {
        let none = |reason: String| MemoryError::NoEmbedder { reason };
        let engine = self.find_engine().await.map_err(none)?;
        open_embedder(&self.config, &self.home, &engine, &self.first_use)
            .await
            .map_err(|error| none(error.to_string()))
    }

    /// A model that the user named is one of the engine that answers; the one that comes with Hob needs no other engine.
    async fn find_engine(&self) -> Result<Arc<dyn Engine>, String> {
        let engines = engines(&self.config, &self.home).map_err(|error| error.to_string())?;
        if self.config.memory.embedding_model.is_some() {
            let chosen = choose(&engines, &self.config, &Wishes::default()).await;
            return chosen.map(|chosen| chosen.engine).map_err(|error| error.to_string());
        }
        let ours = engines.iter().find(|engine| engine.key() == EngineName::Embedded.as_str());
        let engine = ours.or(engines.first()).ok_or_else(|| "there is no engine at all".to_owned())?;
        Ok(Arc::clone(engine))
    }
}

/// What the user asked last.
fn last_question(messages: &[Message]) -> Option<String> {
    let last = messages.iter().rfind(|message| message.role == Role::User)?;
    Some(last.content.text().into_owned()).filter(|text| !text.trim().is_empty())
}

fn backend(key: MemoryBackendName) -> MemoryBackend {
    match key {
        MemoryBackendName::Sqlite => MemoryBackend::Sqlite,
        MemoryBackendName::Vector => MemoryBackend::Vector,
        MemoryBackendName::Hybrid => MemoryBackend::Hybrid,
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;

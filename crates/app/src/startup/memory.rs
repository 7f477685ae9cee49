//! The memory according to the configuration, and the engine that makes its vectors.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use hob_config::{Config, EngineName, MemoryBackendName};
use hob_core::{CollectionName, Engine, EventBus};
use hob_db::Storage;
use hob_memory::ReaderProcess;
use hob_memory::{
    ChunkOptions, ChunkOptionsError, ContextBudget, DocumentLibrary, DocumentLibraryOptions, Embedder,
    EmbedderDownload, EmbedderSource, IndexOptions, MemoryBackend, MemoryError, MemoryOptions, MemoryService,
    OcrProgram, ReadLimits, RelevanceFloor, WatchOptions,
};
use hob_models::FirstRun;
use tokio::sync::OnceCell;

use crate::databases::UPLOADS;
use crate::startup::embedder::open_embedder;
use crate::startup::engines::{choose, engines};

/// What the memory is connected to.
#[derive(Default)]
pub struct MemoryWiring {
    pub bus: EventBus,
    /// What makes the vectors; `None` chooses it when the first is needed.
    pub embedder: Option<Embedder>,
    /// Whether Hob may then download the model that makes them.
    pub first_use: FirstRun,
    /// The process that reads files which a server should not read itself; `None` reads them in this process.
    pub reader: Option<ReaderProcess>,
}

/// The memory in a database, according to the configuration. Opens nothing yet. `home` is Hob's home directory.
pub fn open_memory(
    config: &Config,
    home: &Path,
    database: impl Into<Storage>,
    wiring: MemoryWiring,
) -> Result<Arc<MemoryService>, ChunkOptionsError> {
    let settings = &config.memory;
    let home_itself = home.canonicalize().unwrap_or_else(|_| home.to_owned());
    let budget = ContextBudget { passages: settings.context_passages, tokens: settings.context_tokens };
    Ok(Arc::new(MemoryService::new(MemoryOptions {
        database: database.into(),
        backend: backend(settings.backend),
        relevance: RelevanceFloor {
            word_share: settings.min_word_share,
            similarity: settings.min_similarity,
        },
        index: IndexOptions {
            chunks: ChunkOptions::new(settings.chunk_size, settings.chunk_overlap)?,
            limits: ReadLimits {
                reader_process: wiring.reader,
                uploads: Some(home_itself.join(UPLOADS)),
                ocr: Some(OcrProgram::tesseract(settings.ocr_languages.clone())),
                ..ReadLimits::default()
            },
            private: vec![home_itself],
            collection: CollectionName::default(),
        },
        context: budget,
        adds_context: settings.context,
        embedders: Arc::new(ConfiguredEmbedder {
            config: config.clone(),
            home: home.to_owned(),
            first_use: wiring.first_use,
            ready: OnceCell::new_with(wiring.embedder),
        }),
        bus: wiring.bus,
    })))
}

/// Adds documents to the memory in the background. Watches nothing until it is started.
pub fn open_document_library(home: &Path, memory: Arc<MemoryService>) -> DocumentLibrary {
    let home = home.canonicalize().unwrap_or_else(|_| home.to_owned());
    DocumentLibrary::new(
        memory,
        DocumentLibraryOptions { uploads: home.join(UPLOADS), watch: WatchOptions::default() },
    )
}

/// What makes the vectors, chosen when it is first needed.
struct ConfiguredEmbedder {
    config: Config,
    home: PathBuf,
    first_use: FirstRun,
    ready: OnceCell<Embedder>,
}

#[async_trait]
impl EmbedderSource for ConfiguredEmbedder {
    async fn embedder(&self, download: EmbedderDownload) -> Result<Embedder, MemoryError> {
        let first_use = match download {
            EmbedderDownload::Allowed => &self.first_use,
            EmbedderDownload::Refused => &FirstRun::Refuse,
        };
        self.ready.get_or_try_init(|| self.open(first_use)).await.cloned()
    }
}

impl ConfiguredEmbedder {
    async fn open(&self, first_use: &FirstRun) -> Result<Embedder, MemoryError> {
        let none = |reason: String| MemoryError::NoEmbedder { reason };
        let engine = self.find_engine().await.map_err(none)?;
        open_embedder(&self.config, &self.home, &engine, first_use)
            .await
            .map_err(|error| none(error.to_string()))
    }

    /// A configured model belongs to the selected engine; Hob's own model runs in this process.
    async fn find_engine(&self) -> Result<Arc<dyn Engine>, String> {
        let engines = engines(&self.config, &self.home).map_err(|error| error.to_string())?;
        if self.config.memory.embedding_model.is_some() {
            let chosen = choose(&engines, &self.config, None).await;
            return chosen.map(|chosen| chosen.engine).map_err(|error| error.to_string());
        }
        let ours = engines.iter().find(|engine| engine.key() == EngineName::Embedded.as_str());
        let engine = ours.or(engines.first()).ok_or_else(|| "there is no engine at all".to_owned())?;
        Ok(Arc::clone(engine))
    }
}

fn backend(key: MemoryBackendName) -> Option<MemoryBackend> {
    match key {
        MemoryBackendName::Auto => None,
        MemoryBackendName::Sqlite => Some(MemoryBackend::Sqlite),
        MemoryBackendName::Vector => Some(MemoryBackend::Vector),
        MemoryBackendName::Hybrid => Some(MemoryBackend::Hybrid),
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;

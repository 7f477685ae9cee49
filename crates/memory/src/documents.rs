//! The memory itself: the user's documents, opened when they are first asked for, and never created by a mere look.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use async_trait::async_trait;
use hob_core::{
    Event, EventBus, Found, IndexReport, Memory, MemoryBackend, MemoryError, MemoryQuery, MemoryStats, Note,
    RunEvents,
};
use hob_store::memory::Forgotten;
use tokio_util::sync::CancellationToken;

use crate::blocking::blocking;
use crate::embed::EmbedderSource;
use crate::failure::store_failed;
use crate::index::watch::Watch;
use crate::index::{IndexOptions, Progress, index, resolve};
use crate::note::note_source;
use crate::search::{Purpose, Search, search};
use crate::shelf::Shelf;

/// Sources that are removed in one go.
const FORGOTTEN_AT_ONCE: usize = 128;

/// Hears how far indexing is. Called from any thread.
pub type Listener = Arc<dyn Fn(Progress<'_>) + Send + Sync>;

/// What the memory is made of.
pub struct DocumentParts {
    /// Where its database is, or will be.
    pub database: PathBuf,
    /// How passages are found when nobody says.
    pub backend: MemoryBackend,
    pub options: IndexOptions,
    pub embedders: Arc<dyn EmbedderSource>,
    /// Hears of everything that is stored or looked for.
    pub bus: EventBus,
}

/// The documents that were indexed.
pub struct Documents {
    parts: DocumentParts,
    events: RunEvents,
    shelf: Shelf,
}

/// One run of indexing.
#[derive(Clone)]
pub struct Indexing {
    /// Whether chunks get vectors.
    pub backend: MemoryBackend,
    pub listener: Listener,
    pub stop: CancellationToken,
}

impl Documents {
    pub fn new(parts: DocumentParts) -> Self {
        let events = RunEvents::new(parts.bus.clone(), "");
        Documents { shelf: Shelf::new(parts.database.clone()), parts, events }
    }

    pub fn backend(&self) -> MemoryBackend {
        self.parts.backend
    }

    /// As [`Memory::search`], told of as part of a run.
    pub async fn search_for(
        &self,
        query: &MemoryQuery,
        purpose: Purpose,
        events: &RunEvents,
    ) -> Result<Found, MemoryError> {
        let backend = query.backend.unwrap_or(self.parts.backend);
        let store = self.shelf.find().await?.ok_or(MemoryError::Empty)?;
        let wanted = Search { question: &query.text, count: query.top_k, backend, purpose };
        let passages = search(&store, self.parts.embedders.as_ref(), wanted).await?;
        events.publish(Event::MemoryRetrieve {
            backend: backend.as_str().to_owned(),
            query: query.text.clone(),
            results: passages.len(),
        });
        Ok(Found { backend, passages })
    }

    /// As [`Memory::index`], with somebody who listens and may stop it. Dropping it stops it too.
    pub async fn index_with(&self, path: &Path, indexing: Indexing) -> Result<IndexReport, MemoryError> {
        let Indexing { backend, listener, stop } = indexing;
        // Before a database is made for nothing.
        let path = resolve(path)?;
        // Before an hour's work that then lacks its second half.
        let embedder = match backend.needs_vectors() {
            true => Some(self.parts.embedders.embedder().await?),
            false => None,
        };
        let store = self.shelf.open().await?;
        let mut report = {
            let stop = stop.child_token();
            let _dropped = stop.clone().drop_guard();
            let (store, options, listener) =
                (store.clone(), self.parts.options.clone(), Arc::clone(&listener));
            blocking(move || index(&store, &path, &options, &*listener, &stop)).await??
        };
        if let Some(embedder) = embedder {
            let embedding = embedder.embed_missing(&store, &*listener);
            report.vectors = stop.run_until_cancelled(embedding).await.ok_or(MemoryError::Stopped)??;
        }
        if report.indexed + report.removed + report.vectors > 0 {
            // What is reported as done is on the disk.
            blocking(move || store.sync()).await?.map_err(store_failed)?;
        }
        self.tell_of_storing(backend, report.chunks);
        Ok(report)
    }

    /// Indexes, and again whenever something changes, until it is told to stop. `after` hears what each round did.
    pub async fn keep_up(
        &self,
        path: &Path,
        indexing: Indexing,
        mut after: impl FnMut(&IndexReport),
    ) -> Result<(), MemoryError> {
        // Before the first look, so that nothing happens unseen between the two.
        let watch = Arc::new(Mutex::new(Watch::start(path, self.shelf.path())?));
        loop {
            match self.index_with(path, indexing.clone()).await {
                Ok(report) => after(&report),
                Err(MemoryError::Stopped) => return Ok(()),
                Err(error) => return Err(error),
            }
            let (watch, stop) = (Arc::clone(&watch), indexing.stop.child_token());
            let _dropped = stop.clone().drop_guard();
            let changed =
                blocking(move || watch.lock().unwrap_or_else(PoisonError::into_inner).changed(&stop)).await?;
            if !changed {
                return Ok(());
            }
        }
    }

    /// Forgets a file, everything below a directory, or a note by its name. The file itself stays, if it is there at all.
    pub async fn forget(&self, path: &str) -> Result<Forgotten, MemoryError> {
        let Some(store) = self.shelf.find().await? else { return Err(MemoryError::Empty) };
        let path = known_as(path)?;
        blocking(move || {
            let mut forgotten = Forgotten::default();
            loop {
                let paths = store.paths_below(&path, FORGOTTEN_AT_ONCE)?;
                if paths.is_empty() {
                    store.sync()?;
                    return Ok(forgotten);
                }
                let gone = store.remove(&paths)?;
                forgotten.sources += gone.sources;
                forgotten.chunks += gone.chunks;
            }
        })
        .await?
        .map_err(store_failed)
    }

    fn tell_of_storing(&self, backend: MemoryBackend, chunks: u64) {
        let count = usize::try_from(chunks).unwrap_or(usize::MAX);
        self.events.publish(Event::MemoryStore { backend: backend.as_str().to_owned(), count });
    }
}

/// A path as the index knows it, whether the file is still there or not.
fn known_as(path: &str) -> Result<String, MemoryError> {
    if path.starts_with("note:") {
        return Ok(path.to_owned());
    }
    let failed = |reason: String| MemoryError::Path { path: path.into(), reason };
    let absolute = match Path::new(path).canonicalize() {
        Ok(resolved) => resolved,
        Err(_) => std::path::absolute(path).map_err(|error| failed(error.to_string()))?,
    };
    absolute.into_os_string().into_string().map_err(|_| failed("its name is not UTF-8".to_owned()))
}

#[async_trait]
impl Memory for Documents {
    async fn search(&self, query: &MemoryQuery) -> Result<Found, MemoryError> {
        self.search_for(query, Purpose::Asked, &self.events).await
    }

    async fn store(&self, note: Note) -> Result<String, MemoryError> {
        let source = note_source(note, &self.parts.options)?;
        let (name, chunks) = (source.path.clone(), source.chunks.len() as u64);
        let store = self.shelf.open().await?;
        let to = store.clone();
        blocking(move || to.save(&source, SystemTime::now())).await?.map_err(store_failed)?;
        if self.parts.backend.needs_vectors() {
            // A note that has no vector yet is found by its words, and gets one with the next indexing.
            match self.parts.embedders.embedder().await {
                Ok(embedder) => drop(embedder.embed_missing(&store, &|_| {}).await?),
                Err(error) => tracing::warn!(%error, "a note was stored without a vector"),
            }
        }
        self.tell_of_storing(self.parts.backend, chunks);
        Ok(name)
    }

    async fn index(&self, path: &Path) -> Result<IndexReport, MemoryError> {
        let listener: Listener = Arc::new(|_| {});
        let indexing = Indexing { backend: self.parts.backend, listener, stop: CancellationToken::new() };
        self.index_with(path, indexing).await
    }

    async fn stats(&self) -> Result<MemoryStats, MemoryError> {
        let backend = self.parts.backend;
        let Some(store) = self.shelf.find().await? else {
            return Ok(MemoryStats { backend, ..MemoryStats::default() });
        };
        let figures = blocking(move || store.figures()).await?.map_err(store_failed)?;
        Ok(MemoryStats {
            backend,
            sources: figures.sources,
            notes: figures.notes,
            chunks: figures.chunks,
            tokens: figures.tokens,
            source_bytes: figures.source_bytes,
            database_bytes: figures.database_bytes,
            vectors: figures.vectors,
            embedding_models: figures.models,
            last_indexed: figures.last_indexed.map(|moment| moment.to_string()),
        })
    }
}

#[cfg(test)]
#[path = "documents_tests.rs"]
mod tests;

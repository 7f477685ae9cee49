//! The service of the memory: index, search, notes, and context for a question. The first call that needs the database
//! opens it; only indexing, adding a folder and storing a note create it.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hob_core::{
    CollectionName, CollectionSet, Event, EventBus, GenerateRequest, Message, Role, RunEvents, has_passages,
};
use hob_db::{DbResult, Storage};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::backend_choice::BackendChoice;
use crate::context::{Context, ContextBudget, context};
use crate::embed::EmbedderSource;
use crate::index::watch::DirectoryWatch;
use crate::index::{IndexOptions, IndexProgress, index, resolve};
use crate::note::note_source;
use crate::open::{LazyStore, blocking, store_failed};
use crate::relevance::RelevanceFloor;
use crate::search::{SearchPurpose, SearchRequest, search};
use crate::store::{MemoryStore, SourceScope};
use crate::types::{
    IndexReport, MemoryBackend, MemoryError, MemoryQuery, MemoryStats, Note, Passage, SearchResults,
};

/// How long an answer waits for passages.
const CONTEXT_TIMEOUT: Duration = Duration::from_secs(10);

/// Called from any thread.
pub type ProgressListener = Arc<dyn Fn(IndexProgress<'_>) + Send + Sync>;

pub struct MemoryOptions {
    /// The database, which may not exist yet.
    pub database: Storage,
    /// How passages are found; `None` for words and meaning if there are vectors, else for words.
    pub backend: Option<MemoryBackend>,
    pub relevance: RelevanceFloor,
    pub index: IndexOptions,
    /// The limits of context.
    pub context: ContextBudget,
    /// Whether questions get context without asking for it.
    pub adds_context: bool,
    pub embedders: Arc<dyn EmbedderSource>,
    /// Gets an event for every search and every stored note.
    pub bus: EventBus,
}

/// Dropping a future stops its work; what was written stays consistent.
pub struct MemoryService {
    options: MemoryOptions,
    events: RunEvents,
    store: LazyStore,
}

#[derive(Clone)]
pub struct IndexRequest {
    /// Whether chunks get vectors; `None` for the configured backend.
    pub backend: Option<MemoryBackend>,
    /// What files are added to.
    pub collection: CollectionName,
    pub listener: ProgressListener,
    pub stop: CancellationToken,
}

/// Which missing vectors a run creates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MissingVectors {
    /// Those of its collection, also of what earlier runs left without.
    OfCollection,
    /// Those of its file: its payer does not pay for others.
    OfFile,
}

impl MemoryService {
    pub fn new(options: MemoryOptions) -> Self {
        let events = RunEvents::new(options.bus.clone(), "");
        MemoryService { store: LazyStore::new(options.database.clone()), options, events }
    }

    /// The configured backend, or the one that suits what is indexed.
    pub async fn backend(&self) -> Result<MemoryBackend, MemoryError> {
        self.resolve(self.choice(None)).await
    }

    fn choice(&self, asked: Option<MemoryBackend>) -> BackendChoice {
        BackendChoice::new(asked, self.options.backend)
    }

    async fn resolve(&self, choice: BackendChoice) -> Result<MemoryBackend, MemoryError> {
        choice.resolve(async { Ok(self.read(|store| store.has_vectors()).await?.unwrap_or(false)) }).await
    }

    /// The best passages that are relevant, or the best by words if none is.
    pub async fn search(&self, query: &MemoryQuery) -> Result<SearchResults, MemoryError> {
        self.search_for(query, SearchPurpose::UserRequest, &self.events).await
    }

    /// The best passages, even if none is relevant.
    pub async fn search_all(&self, query: &MemoryQuery) -> Result<SearchResults, MemoryError> {
        self.search_for(query, SearchPurpose::AllPassages, &self.events).await
    }

    /// Like [`Self::search`], as part of a run.
    pub async fn search_for(
        &self,
        query: &MemoryQuery,
        purpose: SearchPurpose,
        events: &RunEvents,
    ) -> Result<SearchResults, MemoryError> {
        let store = self.store.find().await?.ok_or(MemoryError::Empty)?;
        let choice = self.choice(query.backend);
        let mut backend = self.resolve(choice).await?;
        let wanted = |backend| SearchRequest {
            question: &query.text,
            count: query.top_k,
            backend,
            download: choice.download(),
            purpose,
            floor: self.options.relevance,
            collections: query.collections.clone(),
        };
        let embedders = self.options.embedders.as_ref();
        let passages = match search(&store, embedders, wanted(backend)).await {
            Err(error) if choice.is_automatic() && error.is_about_vectors() => {
                tracing::debug!(%error, "searching by words");
                backend = MemoryBackend::Sqlite;
                search(&store, embedders, wanted(backend)).await?
            }
            found => found?,
        };
        events.publish(Event::MemoryRetrieve {
            backend: backend.as_str().to_owned(),
            query: query.text.clone(),
            results: passages.len(),
        });
        Ok(SearchResults { backend, passages })
    }

    /// Adds passages of the collections for the last question to the request, if the configuration says so, and returns them as the model
    /// gets them. An answer never fails without them.
    pub async fn add_context(
        &self,
        request: &mut GenerateRequest,
        collections: CollectionSet,
        events: &RunEvents,
    ) -> Vec<Passage> {
        match self.options.adds_context {
            true => self.add_wanted_context(request, collections, events).await,
            false => Vec::new(),
        }
    }

    /// Whether the collections have documents. A memory that cannot be read may have some.
    pub async fn has_documents(&self, collections: CollectionSet) -> bool {
        match self.stats(collections).await {
            Ok(stats) => stats.sources > 0,
            Err(error) => {
                tracing::warn!(
                    %error,
                    "the documents of the memory cannot be counted. 'hob doctor' checks the database"
                );
                true
            }
        }
    }

    /// Like [`Self::add_context`], also if the configuration adds none.
    pub async fn add_wanted_context(
        &self,
        request: &mut GenerateRequest,
        collections: CollectionSet,
        events: &RunEvents,
    ) -> Vec<Passage> {
        let budget = self.options.context;
        let Some(question) = last_question(&request.messages) else { return Vec::new() };
        if has_passages(&request.messages) {
            return Vec::new();
        }
        let query = MemoryQuery { text: question, top_k: budget.passages, backend: None, collections };
        let found = match tokio::time::timeout(CONTEXT_TIMEOUT, self.find_context(query, events)).await {
            Ok(Ok(passages)) => passages,
            Ok(Err(MemoryError::Empty)) => return Vec::new(),
            Ok(Err(error)) => {
                tracing::warn!(
                    %error,
                    "the memory cannot be searched; Hob answers without it. 'hob doctor' checks the database"
                );
                return Vec::new();
            }
            Err(_) => {
                tracing::warn!(
                    "the memory is too slow; Hob answers without it. Set [memory] context = false to search \
                     only on demand"
                );
                return Vec::new();
            }
        };
        let Some(context) = context(&found, budget.tokens) else { return Vec::new() };
        context.put_into(&mut request.messages);
        let Context { passages, .. } = context;
        passages
    }

    /// Chunks without vectors are found by their words.
    async fn find_context(
        &self,
        query: MemoryQuery,
        events: &RunEvents,
    ) -> Result<Vec<Passage>, MemoryError> {
        match self.search_for(&query, SearchPurpose::Context, events).await {
            Err(error) if error.is_about_vectors() => {
                tracing::debug!(%error, "searching by words");
                let by_words = MemoryQuery { backend: Some(MemoryBackend::Sqlite), ..query };
                Ok(self.search_for(&by_words, SearchPurpose::Context, events).await?.passages)
            }
            found => Ok(found?.passages),
        }
    }

    /// Saves a note in the owner's collection, and returns its name. The same note is saved once.
    pub async fn store(&self, note: Note) -> Result<String, MemoryError> {
        let source = note_source(note, &self.options.index)?;
        let (name, chunks) = (source.path.clone(), source.chunks.len() as u64);
        let store = self.store.open().await?;
        let backend = self.backend().await?;
        let to = Arc::clone(&store);
        blocking(move || to.save(&source, SystemTime::now())).await?.map_err(store_failed)?;
        // A note without a vector is found by its words, and gets one with the next indexing.
        if backend.needs_vectors()
            && let Err(error) = self.embed_note(&store, &name).await
        {
            tracing::warn!(
                %error,
                "a note is stored without a vector, and found by its words. The next indexing adds the vector"
            );
        }
        self.publish_stored(backend, chunks);
        Ok(name)
    }

    async fn embed_note(&self, store: &Arc<dyn MemoryStore>, name: &str) -> Result<(), MemoryError> {
        let download = self.choice(None).download();
        let embedder = self.options.embedders.embedder(download).await?;
        // The payer of this note does not pay for others.
        embedder.embed_missing(store, &SourceScope::Path(name.to_owned()), &|_| {}).await.map(drop)
    }

    /// Indexes the changed files of a directory, or a file, into the owner's collection.
    pub async fn index(&self, path: &Path) -> Result<IndexReport, MemoryError> {
        let listener: ProgressListener = Arc::new(|_| {});
        let indexing = IndexRequest {
            backend: None,
            collection: CollectionName::default(),
            listener,
            stop: CancellationToken::new(),
        };
        self.index_with(path, indexing).await
    }

    /// Like [`Self::index`], with a listener and a stop token. Dropping the future also stops it.
    pub async fn index_with(&self, path: &Path, indexing: IndexRequest) -> Result<IndexReport, MemoryError> {
        self.index_for(path, indexing, MissingVectors::OfCollection).await
    }

    /// Like [`Self::index_with`], with these vectors.
    pub(crate) async fn index_for(
        &self,
        path: &Path,
        indexing: IndexRequest,
        vectors: MissingVectors,
    ) -> Result<IndexReport, MemoryError> {
        let IndexRequest { backend, collection, listener, stop } = indexing;
        // Before a database is created.
        let path = resolve(path)?;
        let choice = self.choice(backend);
        let backend = self.resolve(choice).await?;
        // Checked before the long work.
        let embedder = match backend.needs_vectors() {
            true => match self.options.embedders.embedder(choice.download()).await {
                Err(error) if choice.is_automatic() => {
                    tracing::warn!(
                        %error,
                        "no vectors can be made, so new passages are found by their words. Index again later \
                         to add them"
                    );
                    None
                }
                embedder => Some(embedder?),
            },
            false => None,
        };
        let store = self.store.open().await?;
        let sources = match vectors {
            MissingVectors::OfCollection => SourceScope::Collections(CollectionSet::of(collection.clone())),
            MissingVectors::OfFile => SourceScope::Path(path.to_string_lossy().into_owned()),
        };
        let mut report = {
            let stop = stop.child_token();
            let _dropped = stop.clone().drop_guard();
            let options = IndexOptions { collection, ..self.options.index.clone() };
            let (store, listener) = (Arc::clone(&store), Arc::clone(&listener));
            blocking(move || index(&*store, &path, &options, &*listener, &stop)).await??
        };
        if let Some(embedder) = embedder {
            let embedding = embedder.embed_missing(&store, &sources, &*listener);
            report.vectors = stop.run_until_cancelled(embedding).await.ok_or(MemoryError::Stopped)??;
        }
        if report.indexed + report.added + report.removed + report.vectors > 0 {
            // Reported work is on the disk.
            blocking(move || store.sync()).await?.map_err(store_failed)?;
        }
        self.publish_stored(backend, report.chunks);
        Ok(report)
    }

    /// Indexes now and after every change, until it is stopped. Calls `after` with each report.
    pub async fn keep_up(
        &self,
        path: &Path,
        indexing: IndexRequest,
        mut after: impl FnMut(&IndexReport),
    ) -> Result<(), MemoryError> {
        // Before the first run, so that no change is missed.
        let watch = Arc::new(Mutex::new(DirectoryWatch::start(path, self.store.path())?));
        let mut is_first = true;
        loop {
            match self.index_with(path, indexing.clone()).await {
                Ok(report) => after(&report),
                Err(MemoryError::Stopped) => return Ok(()),
                // It may get new files.
                Err(error @ MemoryError::NoFiles { .. }) if !is_first => {
                    tracing::warn!(%error, "the memory is not changed; Hob indexes the directory again after its next change");
                }
                Err(error) => return Err(error),
            }
            is_first = false;
            let (watch, stop) = (Arc::clone(&watch), indexing.stop.child_token());
            let _dropped = stop.clone().drop_guard();
            let changed = blocking(move || watch.lock().changed(&stop)).await?;
            if !changed {
                return Ok(());
            }
        }
    }

    /// How much is in the collections.
    pub async fn stats(&self, collections: CollectionSet) -> Result<MemoryStats, MemoryError> {
        let choice = self.choice(None);
        let (backend, automatic) = (self.resolve(choice).await?, choice.is_automatic());
        let is_all = collections == CollectionSet::All;
        let Some(store) = self.store.find().await? else {
            let database_bytes = is_all.then_some(0);
            return Ok(MemoryStats { backend, automatic, database_bytes, ..MemoryStats::default() });
        };
        let size = blocking(move || store.size_of(&collections)).await?.map_err(store_failed)?;
        Ok(MemoryStats {
            backend,
            automatic,
            sources: size.sources,
            notes: size.notes,
            chunks: size.chunks,
            tokens: size.tokens,
            source_bytes: size.source_bytes,
            // The size of the database includes other collections.
            database_bytes: is_all.then_some(size.database_bytes),
            vectors: size.vectors,
            embedding_models: size.models,
            collections: size.collections,
            last_indexed: size.last_indexed.map(|moment| moment.to_string()),
        })
    }

    pub fn index_options(&self) -> &IndexOptions {
        &self.options.index
    }

    /// Works on what the memory has; `None` if there is no memory yet.
    pub async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn MemoryStore) -> DbResult<T> + Send + 'static,
    ) -> Result<Option<T>, MemoryError> {
        let Some(store) = self.store.find().await? else { return Ok(None) };
        blocking(move || work(&*store)).await?.map(Some).map_err(store_failed)
    }

    /// The same, and creates the memory if necessary.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn MemoryStore) -> DbResult<T> + Send + 'static,
    ) -> Result<T, MemoryError> {
        let store = self.store.open().await?;
        blocking(move || work(&*store)).await?.map_err(store_failed)
    }

    fn publish_stored(&self, backend: MemoryBackend, chunks: u64) {
        let count = usize::try_from(chunks).unwrap_or(usize::MAX);
        self.events.publish(Event::MemoryStore { backend: backend.as_str().to_owned(), count });
    }
}

/// The text of the last user message.
fn last_question(messages: &[Message]) -> Option<String> {
    let last = messages.iter().rfind(|message| message.role == Role::User)?;
    Some(last.content.text().into_owned()).filter(|text| !text.trim().is_empty())
}

/// The indexed form of a path, whose file may be deleted.
pub(crate) fn known_as(path: &str) -> Result<String, MemoryError> {
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

#[cfg(test)]
#[path = "service_tests.rs"]
mod tests;

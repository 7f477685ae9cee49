//! The loaded models: loaded on demand, within a memory limit, unloaded when idle.
//!
//! A model in use is never unloaded. All decisions are made under one lock; models are loaded and unloaded on their own threads.
//! Knows nothing of requests.

use std::collections::HashMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc as orders;
use std::sync::{Arc, OnceLock, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hob_core::{EngineError, RunningModel};
use hob_models::catalogue::tagged_id;
use hob_models::{ModelDirectory, StoredModel, find_by_name};
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore, watch};

use crate::devices::{Offload, card_memory};
use crate::error::{KEY, busy, plain_message, unusable};
use crate::loaded_model::{ContextSize, LoadedModel};
use crate::options::LlamaOptions;
use crate::worker::{Idle, Order, Worker, serve};

/// How long a request waits for memory that other models use.
const MEMORY_TIMEOUT: Duration = Duration::from_secs(60);

/// The stack of a model's thread, which runs grammars of callers. It is address space until it is used.
const STACK: usize = 64 << 20;

/// A loaded model.
#[derive(Clone)]
pub(crate) struct Handle {
    pub(crate) loaded: Arc<LoadedModel>,
    pub(crate) orders: orders::Sender<Order>,
    /// Slots for active and waiting requests.
    pub(crate) queue: Arc<Semaphore>,
}

#[derive(Clone)]
enum Loading {
    Pending,
    Ready(Handle),
    Failed(String),
}

struct Entry {
    /// Distinguishes this loading from earlier ones.
    number: u64,
    /// The file that was loaded.
    path: PathBuf,
    bytes: u64,
    users: usize,
    last_used: Instant,
    loading: watch::Receiver<Loading>,
    thread: Option<JoinHandle<()>>,
}

/// The loaded models.
pub(crate) struct ModelCache {
    options: LlamaOptions,
    pub(crate) directory: ModelDirectory,
    entries: Mutex<HashMap<String, Entry>>,
    /// Bytes of graphics cards for models.
    card_memory: OnceLock<u64>,
    /// Notified when a lease ends or a model is unloaded.
    freed: Notify,
    /// The function that starts the thread of a model.
    spawn: fn(thread::Builder, ModelThread, watch::Sender<Loading>) -> io::Result<JoinHandle<()>>,
}

/// Keeps a model loaded.
pub(crate) struct Lease {
    cache: Arc<ModelCache>,
    id: String,
    number: u64,
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(entry) = self.cache.entries.lock().get_mut(&self.id)
            && entry.number == self.number
        {
            entry.users = entry.users.saturating_sub(1);
            entry.last_used = Instant::now();
        }
        self.cache.freed.notify_waiters();
    }
}

impl ModelCache {
    pub(crate) fn new(options: LlamaOptions) -> Arc<Self> {
        Arc::new(ModelCache {
            directory: ModelDirectory::new(&options.models_dir),
            options,
            entries: Mutex::default(),
            card_memory: OnceLock::new(),
            freed: Notify::new(),
            spawn: |builder, thread, state| builder.spawn(move || thread.run(state)),
        })
    }

    pub(crate) fn options(&self) -> &LlamaOptions {
        &self.options
    }

    /// Bytes for all models, in the memory and on graphics cards. The first call starts llama.cpp and blocks.
    pub(crate) fn memory_budget(&self) -> u64 {
        let cards = *self.card_memory.get_or_init(|| card_memory(self.options.gpu_layers));
        self.options.memory_budget.saturating_add(cards)
    }

    pub(crate) fn loaded(&self) -> Vec<String> {
        let mut ids: Vec<String> = self.entries.lock().keys().cloned().collect();
        ids.sort();
        ids
    }

    /// A model that is loaded and ready.
    pub(crate) fn loaded_model(&self, id: &str) -> Option<Arc<LoadedModel>> {
        let entries = self.entries.lock();
        match &*entries.get(id)?.loading.borrow() {
            Loading::Ready(handle) => Some(Arc::clone(&handle.loaded)),
            Loading::Pending | Loading::Failed(_) => None,
        }
    }

    /// The loaded models with their size, and when they are unloaded if idle.
    pub(crate) fn running(&self) -> Vec<RunningModel> {
        let now = (Instant::now(), SystemTime::now());
        let describe = |(id, entry): (&String, &Entry)| {
            let idle = if entry.users > 0 { Duration::ZERO } else { now.0.duration_since(entry.last_used) };
            let left = self.options.keep_alive.saturating_sub(idle);
            let expires = now.1.checked_add(left).and_then(|at| at.duration_since(UNIX_EPOCH).ok());
            let offload = match &*entry.loading.borrow() {
                Loading::Ready(handle) => handle.loaded.offload.clone(),
                Loading::Pending | Loading::Failed(_) => Offload::default(),
            };
            RunningModel {
                id: id.clone(),
                size: Some(entry.bytes),
                size_vram: (offload.layers > 0).then(|| offload.bytes()),
                expires: expires.and_then(|since| i64::try_from(since.as_secs()).ok()),
                devices: offload.shares,
            }
        };
        let mut running: Vec<RunningModel> = self.entries.lock().iter().map(describe).collect();
        running.sort_by(|one, other| one.id.cmp(&other.id));
        running
    }

    /// Unloads an idle model, and returns when its memory is free. Does nothing if it is not loaded.
    pub(crate) async fn unload(&self, model: &str) -> Result<(), EngineError> {
        let id = tagged_id(model.strip_suffix(".gguf").unwrap_or(model));
        let entry = {
            let mut entries = self.entries.lock();
            match entries.get(id) {
                Some(entry) if entry.users > 0 => {
                    return Err(busy(format!("the model '{id}' is in use; unload it later"), 1));
                }
                _ => entries.remove(id),
            }
        };
        let Some(Entry { thread, loading, .. }) = entry else { return Ok(()) };
        self.freed.notify_waiters();
        // The thread ends with the last sender of orders.
        drop(loading);
        if let Some(thread) = thread {
            // A panic is already logged.
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
        Ok(())
    }

    /// The sum of a counter of the loaded models.
    pub(crate) fn counted(&self, counter: impl Fn(&LoadedModel) -> &AtomicU64) -> u64 {
        let of = |entry: &Entry| match &*entry.loading.borrow() {
            Loading::Ready(handle) => counter(&handle.loaded).load(Ordering::Relaxed),
            Loading::Pending | Loading::Failed(_) => 0,
        };
        self.entries.lock().values().map(of).sum()
    }

    /// Returns the model, and loads it if necessary.
    pub(crate) async fn acquire(self: &Arc<Self>, model: &str) -> Result<(Handle, Lease), EngineError> {
        let id = tagged_id(model.strip_suffix(".gguf").unwrap_or(model));
        let (lease, mut loading) = match self.join(id) {
            Some(joined) => joined,
            None => self.load(id).await?,
        };
        let state =
            loading.wait_for(|state| !matches!(state, Loading::Pending)).await.map(|state| state.clone());
        match state {
            Ok(Loading::Ready(handle)) => Ok((handle, lease)),
            Ok(Loading::Failed(message)) => Err(unusable(message)),
            Ok(Loading::Pending) | Err(_) => {
                Err(unusable(format!("loading the model '{id}' was interrupted")))
            }
        }
    }

    /// A lease of a model that is loaded or being loaded. A model whose file was deleted takes no more requests, and is unloaded
    /// when the active ones have ended.
    fn join(self: &Arc<Self>, id: &str) -> Option<(Lease, watch::Receiver<Loading>)> {
        let mut entries = self.entries.lock();
        let entry = entries.get_mut(id).filter(|entry| entry.path.exists())?;
        entry.users += 1;
        Some((self.lease(id, entry.number), entry.loading.clone()))
    }

    fn lease(self: &Arc<Self>, id: &str, number: u64) -> Lease {
        Lease { cache: Arc::clone(self), id: id.to_owned(), number }
    }

    async fn load(self: &Arc<Self>, id: &str) -> Result<(Lease, watch::Receiver<Loading>), EngineError> {
        let stored = self.find(id).await?;
        let id = stored.id.as_str();
        let size = ContextSize::of(&stored, &self.options);
        let bytes = size.memory(&stored);
        let cache = Arc::clone(self);
        let budget = tokio::task::spawn_blocking(move || cache.memory_budget()).await;
        let budget = budget.map_err(|error| unusable(error.to_string()))?;
        if stored.problem.is_none() && bytes > budget {
            return Err(unusable(format!(
                "the model '{id}' needs {} of memory, but the limit for models is {}. \
                 Choose a smaller model or quantisation, or a smaller context.",
                megabytes(bytes),
                megabytes(budget)
            )));
        }
        let started = Instant::now();
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            // Enabled before the check, so that no notification is missed.
            freed.as_mut().enable();
            if let Some(joined) = self.try_start(id, &stored, bytes)? {
                return Ok(joined);
            }
            let left = MEMORY_TIMEOUT.saturating_sub(started.elapsed());
            if tokio::time::timeout(left, freed).await.is_err() {
                return Err(busy(
                    format!(
                        "not enough memory for the model '{id}' ({}) while others are in use: {}",
                        megabytes(bytes),
                        self.loaded().join(", ")
                    ),
                    10,
                ));
            }
        }
    }

    /// The files of a model.
    pub(crate) async fn find(self: &Arc<Self>, id: &str) -> Result<StoredModel, EngineError> {
        let directory = self.directory.clone();
        let wanted = id.to_owned();
        let models = tokio::task::spawn_blocking(move || directory.list())
            .await
            .map_err(|error| unusable(error.to_string()))?
            .map_err(|error| unusable(error.to_string()))?;
        let names = models.iter().map(|model| model.id.clone()).collect();
        find_by_name(models, &wanted).ok_or(EngineError::ModelNotFound {
            engine: KEY.into(),
            model: wanted,
            available: names,
        })
    }

    /// Starts loading if enough memory is free or can be freed; otherwise `None`.
    fn try_start(
        self: &Arc<Self>,
        id: &str,
        stored: &StoredModel,
        bytes: u64,
    ) -> Result<Option<(Lease, watch::Receiver<Loading>)>, EngineError> {
        let mut entries = self.entries.lock();
        if let Some(entry) = entries.get_mut(id) {
            entry.users += 1;
            return Ok(Some((self.lease(id, entry.number), entry.loading.clone())));
        }
        let in_use: u64 = entries.values().filter(|entry| entry.users > 0).map(|entry| entry.bytes).sum();
        let budget = self.memory_budget();
        if in_use.saturating_add(bytes) > budget && !entries.is_empty() {
            return Ok(None);
        }
        let mut leaving = Vec::new();
        while entries.values().map(|entry| entry.bytes).sum::<u64>().saturating_add(bytes) > budget {
            let oldest = entries
                .iter()
                .filter(|(_, entry)| entry.users == 0)
                .min_by_key(|(_, entry)| entry.last_used)
                .map(|(id, _)| id.clone());
            let Some(entry) = oldest.and_then(|id| entries.remove(&id)) else {
                break;
            };
            leaving.extend(entry.thread);
        }
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let (sender, loading) = watch::channel(Loading::Pending);
        let thread = ModelThread {
            cache: Arc::downgrade(self),
            options: self.options.clone(),
            stored: stored.clone(),
            number,
            leaving,
        };
        let builder = thread::Builder::new().name(format!("model {id}")).stack_size(STACK);
        let thread = (self.spawn)(builder, thread, sender).map_err(|error| {
            // Not recorded, so that the next request tries again.
            tracing::error!(model = id, %error, "cannot start the thread of a model");
            busy(format!("cannot start a thread for the model '{id}': {error}"), 1)
        })?;
        let thread = Some(thread);
        let entry = Entry {
            number,
            path: stored.path.clone(),
            bytes,
            users: 1,
            last_used: Instant::now(),
            loading: loading.clone(),
            thread,
        };
        entries.insert(id.to_owned(), entry);
        Ok(Some((self.lease(id, number), loading)))
    }

    /// Removes a model, unless it is in use.
    fn retire(&self, id: &str, number: u64) -> bool {
        let mut entries = self.entries.lock();
        let gone = match entries.get(id) {
            Some(entry) if entry.number == number => entry.users == 0,
            _ => return true,
        };
        if gone {
            entries.remove(id);
            self.freed.notify_waiters();
        }
        gone
    }

    /// Removes a model, in use or not.
    fn remove(&self, id: &str, number: u64) {
        let mut entries = self.entries.lock();
        if entries.get(id).is_some_and(|entry| entry.number == number) {
            entries.remove(id);
        }
        self.freed.notify_waiters();
    }
}

impl Drop for ModelCache {
    /// Waits for the threads: a process must not end while llama.cpp computes.
    fn drop(&mut self) {
        let entries = std::mem::take(&mut *self.entries.lock());
        for entry in entries.into_values() {
            drop(entry.loading);
            if let Some(thread) = entry.thread
                && thread.thread().id() != thread::current().id()
            {
                // A panic is already logged.
                let _ = thread.join();
            }
        }
    }
}

static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// The thread of one model, from loading to unloading.
struct ModelThread {
    cache: Weak<ModelCache>,
    options: LlamaOptions,
    stored: StoredModel,
    number: u64,
    /// The threads of models that are being unloaded.
    leaving: Vec<JoinHandle<()>>,
}

impl ModelThread {
    fn run(mut self, state: watch::Sender<Loading>) {
        for thread in self.leaving.drain(..) {
            let _ = thread.join();
        }
        let id = self.stored.id.clone();
        let mut state = Some(state);
        let outcome = catch_unwind(AssertUnwindSafe(|| self.serve(&mut state)));
        let failure = match outcome {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(plain_message(error)),
            Err(_) => {
                tracing::error!(model = %id, "the thread of a model panicked; the next request loads the model again");
                Some(format!("the thread of the model '{id}' ended"))
            }
        };
        if let Some(cache) = self.cache.upgrade() {
            cache.remove(&id, self.number);
        }
        if let (Some(message), Some(state)) = (failure, state) {
            state.send_replace(Loading::Failed(message));
        }
    }

    /// Loads the model, reports it as ready, and serves. Drops `state` then: it has a sender of orders, and this thread ends with
    /// the last sender.
    fn serve(&self, state: &mut Option<watch::Sender<Loading>>) -> Result<(), EngineError> {
        let id = &self.stored.id;
        let started = Instant::now();
        let loaded = Arc::new(LoadedModel::load(&self.stored, &self.options)?);
        let worker = Worker::new(&loaded)?;
        let (milliseconds, layers) = (started.elapsed().as_millis(), loaded.offload.layers);
        match layers {
            0 => tracing::info!(model = %id, milliseconds, "model loaded"),
            _ => {
                tracing::info!(model = %id, milliseconds, layers, "model loaded, with layers on graphics cards")
            }
        }
        let (sender, receiver) = orders::channel();
        let handle = Handle {
            loaded: Arc::clone(&loaded),
            orders: sender,
            queue: Arc::new(Semaphore::new(loaded.parallel + self.options.queue)),
        };
        if let Some(state) = state.take() {
            state.send_replace(Loading::Ready(handle));
        }
        let keep_alive = self.options.keep_alive.max(Duration::from_millis(10));
        serve(&loaded, &receiver, worker, |idle_for| self.when_idle(idle_for, keep_alive));
        tracing::info!(model = %id, "model unloaded");
        Ok(())
    }

    /// Unloads the model once it has been idle for `keep_alive`.
    fn when_idle(&self, idle_for: Duration, keep_alive: Duration) -> Idle {
        if idle_for < keep_alive {
            return Idle::Wait(keep_alive - idle_for);
        }
        let retired = self.cache.upgrade().is_none_or(|cache| cache.retire(&self.stored.id, self.number));
        // A model with a new request, whose order has not arrived yet, stays.
        if retired { Idle::Leave } else { Idle::Wait(keep_alive) }
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes.div_ceil(1_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_model_whose_thread_could_not_start_is_tried_again() {
        static TRIED: AtomicU64 = AtomicU64::new(0);
        let dir = tempfile::TempDir::new().expect("a directory");
        // No model, but enough of a file to be listed and tried.
        std::fs::write(dir.path().join("model.gguf"), b"GGUF").expect("written");
        let options = LlamaOptions::new(dir.path());
        let mut cache = ModelCache::new(options);
        Arc::get_mut(&mut cache).expect("the only owner").spawn =
            |builder, thread, state| match TRIED.fetch_add(1, Ordering::Relaxed) {
                0 => Err(io::Error::from(io::ErrorKind::WouldBlock)),
                _ => builder.spawn(move || thread.run(state)),
            };
        let first = cache.acquire("model").await.map(|_| ()).expect_err("no thread");
        assert!(matches!(first, EngineError::Refused { status: 429, .. }), "{first}");
        assert_eq!(cache.loaded(), [""; 0]);
        let second = cache.acquire("model").await.map(|_| ()).expect_err("no model").to_string();
        assert!(second.contains("is not usable"), "{second}");
        assert_eq!(TRIED.load(Ordering::Relaxed), 2);
    }
}

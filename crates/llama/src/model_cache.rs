//! The loaded models: loaded on demand, within a memory limit, unloaded when idle.
//!
//! A model in use is never unloaded. Requests for models that do not fit wait in the queue of `load_queue`. All decisions are made
//! under one lock; models are loaded and unloaded on their own threads. Knows nothing of requests.

mod start_waiting;
mod thread_owner;

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hob_core::{DeviceShare, EngineError, RunningModel};
use hob_models::catalogue::tagged_id;
use hob_models::{ModelDirectory, StoredModel, find_by_name};
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};

use crate::cache_entry::Entry;
use crate::card_eviction::{without, without_loading};
use crate::cards::{Card, room, usable_cards};
use crate::draft::with_draft;
use crate::error::{KEY, busy, unusable};
use crate::load_queue::{Group, LoadQueue, Pace, QueueFull, QueuePlace, seconds};
use crate::loaded_model::LoadedModel;
use crate::loading::LoadPlan;
use crate::model_thread::{Handle, Loading, ModelThread, SharedThread};
use crate::options::{GpuLayers, LlamaOptions};
use crate::placement::WaitingModel;

/// How long a request waits for memory that other models use.
const MEMORY_TIMEOUT: Duration = Duration::from_secs(300);

/// What a waiting request gets.
type Grant = Result<(Lease, watch::Receiver<Loading>), EngineError>;

struct CacheState {
    entries: HashMap<String, Entry>,
    queue: LoadQueue<WaitingModel, oneshot::Sender<Grant>>,
    /// The next model waits for them.
    leaving: Vec<LeavingModel>,
}

/// A model that was removed, which may not have freed its memory yet.
struct LeavingModel {
    thread: SharedThread,
    number: u64,
    /// Its part of each graphics card.
    cards: Vec<DeviceShare>,
    /// Whether it has all of that.
    is_loaded: bool,
    planned_on: Vec<Card>,
}

impl CacheState {
    fn remove(&mut self, id: &str) -> Option<Entry> {
        let entry = self.entries.remove(id)?;
        self.leaving.retain(|model| !model.thread.has_ended());
        self.leaving.push(LeavingModel {
            thread: entry.thread.clone(),
            number: entry.number,
            cards: entry.memory.cards.clone(),
            is_loaded: entry.is_loaded,
            planned_on: entry.planned_on.clone(),
        });
        Some(entry)
    }

    /// The cards as they would be without the models that are loaded. Those that are being loaded may not have their memory yet.
    fn without_loaded(&self, cards: &[Card]) -> Vec<Card> {
        let loaded = self.entries.values().filter(|entry| entry.is_loaded);
        without(cards, loaded.flat_map(|entry| &entry.memory.cards))
    }

    /// The same also without the models that are being unloaded, and those that are being loaded, also if they were removed meanwhile.
    fn without_models(&self, cards: &[Card]) -> Vec<Card> {
        let leaving = || self.leaving.iter().filter(|model| !model.thread.has_ended());
        let unloading = leaving().filter(|model| model.is_loaded);
        let cards = without(&self.without_loaded(cards), unloading.flat_map(|model| &model.cards));
        let staying = self.entries.values().filter(|entry| !entry.is_loaded);
        let staying = staying.map(|entry| (entry.number, &entry.memory.cards, &entry.planned_on));
        let removed = leaving().filter(|model| !model.is_loaded);
        let removed = removed.map(|model| (model.number, &model.cards, &model.planned_on));
        let loading: Vec<_> = staying.chain(removed).filter(|(_, shares, _)| !shares.is_empty()).collect();
        match loading.iter().max_by_key(|(number, ..)| *number) {
            Some((_, _, planned_on)) => {
                without_loading(&cards, loading.iter().flat_map(|(_, shares, _)| *shares), planned_on)
            }
            None => cards,
        }
    }
}

/// The loaded models.
pub(crate) struct ModelCache {
    options: LlamaOptions,
    pub(crate) directory: ModelDirectory,
    state: Mutex<CacheState>,
    /// When an idle model may be unloaded for the first in the queue. The waiting requests watch it.
    recheck: watch::Sender<Option<Instant>>,
    /// Bytes of graphics cards for models.
    card_memory: OnceLock<u64>,
    pace: Arc<Pace>,
    /// Models that were loaded so far.
    loads: AtomicU64,
    /// The function that asks for the cards for models.
    cards: fn(GpuLayers) -> Vec<Card>,
    /// The function that starts the thread of a model.
    spawn: fn(thread::Builder, ModelThread, watch::Sender<Loading>) -> io::Result<JoinHandle<()>>,
}

/// Keeps a model loaded.
pub(crate) struct Lease {
    cache: Arc<ModelCache>,
    id: String,
    number: u64,
    since: Instant,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.cache.pace.answered(self.since.elapsed());
        if let Some(entry) = self.cache.state.lock().entries.get_mut(&self.id)
            && entry.number == self.number
        {
            entry.users = entry.users.saturating_sub(1);
            entry.last_used = Instant::now();
        }
        self.cache.advance();
    }
}

/// A request in the queue. When it is cancelled, the next one may be first.
struct Waiting<'a>(&'a Arc<ModelCache>);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.advance();
    }
}

impl ModelCache {
    pub(crate) fn new(options: LlamaOptions) -> Arc<Self> {
        let queue = LoadQueue::new(options.queue.max(1));
        Arc::new(ModelCache {
            directory: ModelDirectory::new(&options.models_dir),
            options,
            state: Mutex::new(CacheState { entries: HashMap::new(), queue, leaving: Vec::new() }),
            recheck: watch::Sender::new(None),
            card_memory: OnceLock::new(),
            pace: Arc::default(),
            loads: AtomicU64::new(0),
            cards: usable_cards,
            spawn: |builder, thread, state| builder.spawn(move || thread.run(state)),
        })
    }

    pub(crate) fn options(&self) -> &LlamaOptions {
        &self.options
    }

    /// Bytes of graphics cards for models. The first call starts llama.cpp and blocks.
    pub(crate) fn card_memory(&self) -> u64 {
        *self.card_memory.get_or_init(|| room(&(self.cards)(self.options.gpu_layers)))
    }

    /// Bytes for all models, in the memory and on graphics cards. Blocks as well.
    pub(crate) fn memory_budget(&self) -> u64 {
        self.options.memory_budget.saturating_add(self.card_memory())
    }

    /// How often a model was loaded.
    pub(crate) fn loads(&self) -> u64 {
        self.loads.load(Ordering::Relaxed)
    }

    pub(crate) fn loaded(&self) -> Vec<String> {
        let mut ids: Vec<String> = self.state.lock().entries.keys().cloned().collect();
        ids.sort();
        ids
    }

    /// A model that is loaded and ready.
    pub(crate) fn loaded_model(&self, id: &str) -> Option<Arc<LoadedModel>> {
        let state = self.state.lock();
        match &*state.entries.get(id)?.loading.borrow() {
            Loading::Ready(handle) => Some(Arc::clone(&handle.loaded)),
            Loading::Pending | Loading::Failed(_) => None,
        }
    }

    /// The loaded models with the memory that they use now, and when they are unloaded if idle.
    pub(crate) fn running(&self) -> Vec<RunningModel> {
        let keep_alive = self.options.keep_alive;
        let describe = |(id, entry): (&String, &Entry)| entry.running(id, keep_alive);
        let mut running: Vec<RunningModel> = self.state.lock().entries.iter().map(describe).collect();
        running.sort_by(|one, other| one.id.cmp(&other.id));
        running
    }

    /// Unloads an idle model, and returns when its memory is free. Does nothing if it is not loaded.
    pub(crate) async fn unload(self: &Arc<Self>, model: &str) -> Result<(), EngineError> {
        let id = tagged_id(model.strip_suffix(".gguf").unwrap_or(model));
        let entry = {
            let mut state = self.state.lock();
            match state.entries.get(id) {
                Some(entry) if entry.users > 0 => {
                    return Err(busy(format!("the model '{id}' is in use; unload it later"), 1));
                }
                _ => state.remove(id),
            }
        };
        let Some(Entry { thread, loading, .. }) = entry else { return Ok(()) };
        // The thread ends with the last sender of orders.
        drop(loading);
        let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        self.advance();
        Ok(())
    }

    /// The sum of a counter of the loaded models.
    pub(crate) fn counted(&self, counter: impl Fn(&LoadedModel) -> Option<&AtomicU64>) -> u64 {
        let of = |entry: &Entry| match &*entry.loading.borrow() {
            Loading::Ready(handle) => {
                counter(&handle.loaded).map_or(0, |count| count.load(Ordering::Relaxed))
            }
            Loading::Pending | Loading::Failed(_) => 0,
        };
        self.state.lock().entries.values().map(of).sum()
    }

    /// Returns the model, and loads it if necessary. Also returns the place in the queue if the request had to wait for memory.
    pub(crate) async fn acquire(
        self: &Arc<Self>,
        model: &str,
    ) -> Result<(Handle, Lease, Option<QueuePlace>), EngineError> {
        let id = tagged_id(model.strip_suffix(".gguf").unwrap_or(model));
        let ((lease, mut loading), place) = match self.join(id) {
            Some(joined) => (joined, None),
            None => self.load(id).await?,
        };
        let state =
            loading.wait_for(|state| !matches!(state, Loading::Pending)).await.map(|state| state.clone());
        match state {
            Ok(Loading::Ready(handle)) => Ok((handle, lease, place)),
            Ok(Loading::Failed(message)) => Err(unusable(message)),
            Ok(Loading::Pending) | Err(_) => {
                Err(unusable(format!("loading the model '{id}' was interrupted")))
            }
        }
    }

    /// A lease of a model that is loaded or being loaded, unless its turn is over. A model whose file was deleted takes no more
    /// requests, and is unloaded when the active ones have ended.
    fn join(self: &Arc<Self>, id: &str) -> Option<(Lease, watch::Receiver<Loading>)> {
        let mut state = self.state.lock();
        let entry = state.entries.get_mut(id).filter(|entry| entry.path.exists())?;
        if !entry.turn.admit(Instant::now()) {
            return None;
        }
        entry.users += 1;
        Some((self.lease(id, entry.number), entry.loading.clone()))
    }

    fn lease(self: &Arc<Self>, id: &str, number: u64) -> Lease {
        Lease { cache: Arc::clone(self), id: id.to_owned(), number, since: Instant::now() }
    }

    /// Waits for the memory of a model, and starts loading it.
    async fn load(
        self: &Arc<Self>,
        id: &str,
    ) -> Result<((Lease, watch::Receiver<Loading>), Option<QueuePlace>), EngineError> {
        let stored = self.find(id).await?;
        let (cache, model) = (Arc::clone(self), stored.clone());
        let needed = tokio::task::spawn_blocking(move || cache.needed(&model)).await;
        let (bytes, cards) = needed.map_err(|error| unusable(error.to_string()))??;
        let id = stored.id.clone();
        let (sender, mut receiver) = oneshot::channel();
        let model = WaitingModel { stored, cards };
        let request = Group { id: id.clone(), model, bytes, waiters: vec![sender] };
        let place = self.state.lock().queue.enter(request, &self.pace).map_err(|QueueFull(wait)| {
            busy(format!("too many requests wait for the model '{id}'; try again later"), seconds(wait))
        })?;
        let _waiting = Waiting(self);
        self.advance();
        if let Ok(granted) = receiver.try_recv() {
            return granted.map(|granted| (granted, None));
        }
        let deadline = Instant::now() + MEMORY_TIMEOUT;
        let mut recheck = self.recheck.subscribe();
        loop {
            let until = recheck.borrow_and_update().map_or(deadline, |recheck| recheck.min(deadline));
            tokio::select! {
                granted = &mut receiver => match granted {
                    Ok(granted) => return granted.map(|granted| (granted, Some(place))),
                    Err(_) => return Err(unusable(format!("loading the model '{id}' was interrupted"))),
                },
                Ok(()) = recheck.changed() => {}
                () = tokio::time::sleep_until(until.into()) => {
                    if Instant::now() >= deadline {
                        break;
                    }
                    self.advance();
                }
            }
        }
        let message = format!(
            "not enough memory for the model '{id}' ({}) while others are in use: {}",
            megabytes(bytes),
            self.loaded().join(", ")
        );
        Err(busy(message, seconds(place.wait)))
    }

    /// The main memory of a model when it is loaded, if the limits allow its context, and the graphics cards without the other models.
    /// The cards have the rest; they may have room for more of it when its turn comes. Blocks.
    fn needed(&self, stored: &StoredModel) -> Result<(u64, Vec<Card>), EngineError> {
        if stored.problem.is_some() {
            // Loading it explains its problem.
            return Ok((0, Vec::new()));
        }
        let cards = (self.cards)(self.options.gpu_layers);
        let Some(plan) = LoadPlan::on(cards.clone(), stored, &self.options) else {
            return Ok((0, Vec::new()));
        };
        let footprint = &plan.footprint;
        let least = if self.options.context.is_some() { footprint.memory } else { footprint.at_start };
        let (bytes, budget) = (least.total(), self.memory_budget());
        if bytes > budget {
            return Err(unusable(format!(
                "the model '{}' needs {} of memory, but the limit for models is {}. \
                 Choose a smaller model or quantisation, or a smaller context.",
                stored.id,
                megabytes(bytes),
                megabytes(budget)
            )));
        }
        Ok((plan.at_start().main, self.state.lock().without_models(&cards)))
    }

    /// A model with its draft model. Blocks.
    pub(crate) fn drafted(&self, stored: &StoredModel) -> StoredModel {
        match &self.options.draft {
            Some(_) => {
                let models = self.directory.list().unwrap_or_default();
                with_draft(stored.clone(), models, self.options.draft.as_ref())
            }
            None => stored.clone(),
        }
    }

    /// The files of a model, and its draft model.
    pub(crate) async fn find(self: &Arc<Self>, id: &str) -> Result<StoredModel, EngineError> {
        let directory = self.directory.clone();
        let wanted = id.to_owned();
        let models = tokio::task::spawn_blocking(move || directory.list())
            .await
            .map_err(|error| unusable(error.to_string()))?
            .map_err(|error| unusable(error.to_string()))?;
        let found = find_by_name(models.clone(), &wanted);
        let found = found.ok_or_else(|| EngineError::ModelNotFound {
            engine: KEY.into(),
            model: wanted,
            available: models.iter().map(|model| model.id.clone()).collect(),
        })?;
        Ok(with_draft(found, models, self.options.draft.as_ref()))
    }
}

impl Drop for ModelCache {
    /// Waits for the threads: a process must not end while llama.cpp computes.
    fn drop(&mut self) {
        let state = self.state.get_mut();
        let leaving = std::mem::take(&mut state.leaving).into_iter();
        let mut threads: Vec<SharedThread> = leaving.map(|model| model.thread).collect();
        // A thread ends with the last sender of orders, which is in its entry.
        threads.extend(std::mem::take(&mut state.entries).into_values().map(|entry| entry.thread));
        // The last owner can be such a thread. The others may wait for its end, so that it does not wait for theirs.
        if !threads.iter().any(SharedThread::is_current) {
            threads.iter().for_each(SharedThread::join);
        }
    }
}

/// In units of 2^20, as the commands show sizes.
fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes.div_ceil(1 << 20))
}

#[cfg(test)]
#[path = "model_cache_tests.rs"]
mod tests;

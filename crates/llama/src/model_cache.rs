//! The loaded models: loaded on demand, within a memory limit, unloaded when idle.
//!
//! A model in use is never unloaded. Requests for models that do not fit wait in the queue of `load_queue`. All decisions are made
//! under one lock; models are loaded and unloaded on their own threads. Knows nothing of requests.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hob_core::{EngineError, RunningModel};
use hob_models::catalogue::tagged_id;
use hob_models::{ModelDirectory, StoredModel, find_by_name};
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};

use crate::cache_entry::Entry;
use crate::devices::{room, usable_cards};
use crate::error::{KEY, busy, unusable};
use crate::load_queue::{
    Group, LoadQueue, Pace, QueueFull, QueuePlace, Resident, Room, Turn, make_room, seconds,
};
use crate::loaded_model::LoadedModel;
use crate::loading::LoadPlan;
use crate::model_thread::{Handle, LoadedMemory, Loading, ModelThread, STACK, SharedThread, ThreadOwner};
use crate::options::LlamaOptions;
use crate::worker::GrowthNeed;

/// How long a request waits for memory that other models use.
const MEMORY_TIMEOUT: Duration = Duration::from_secs(300);

/// What a waiting request gets.
type Grant = Result<(Lease, watch::Receiver<Loading>), EngineError>;

struct CacheState {
    entries: HashMap<String, Entry>,
    queue: LoadQueue<StoredModel, oneshot::Sender<Grant>>,
    /// The threads of models that were removed, which may not have freed their memory yet. The next model waits for them.
    leaving: Vec<SharedThread>,
}

impl CacheState {
    fn remove(&mut self, id: &str) -> Option<Entry> {
        let entry = self.entries.remove(id)?;
        self.leaving.retain(|thread| !thread.has_ended());
        self.leaving.push(entry.thread.clone());
        Some(entry)
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
            spawn: |builder, thread, state| builder.spawn(move || thread.run(state)),
        })
    }

    pub(crate) fn options(&self) -> &LlamaOptions {
        &self.options
    }

    /// Bytes of graphics cards for models. The first call starts llama.cpp and blocks.
    pub(crate) fn card_memory(&self) -> u64 {
        *self.card_memory.get_or_init(|| room(&usable_cards(self.options.gpu_layers)))
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
    pub(crate) fn counted(&self, counter: impl Fn(&LoadedModel) -> &AtomicU64) -> u64 {
        let of = |entry: &Entry| match &*entry.loading.borrow() {
            Loading::Ready(handle) => counter(&handle.loaded).load(Ordering::Relaxed),
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
        let bytes = needed.map_err(|error| unusable(error.to_string()))??;
        let id = stored.id.clone();
        let (sender, mut receiver) = oneshot::channel();
        let request = Group { id: id.clone(), model: stored, bytes, waiters: vec![sender] };
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

    /// The main memory of a model when it is loaded, if the limits allow its context. The graphics cards have the rest; they may
    /// have room for more of it when its turn comes. Blocks.
    fn needed(&self, stored: &StoredModel) -> Result<u64, EngineError> {
        let plan = match stored.problem {
            // Loading it explains its problem.
            Some(_) => None,
            None => LoadPlan::new(stored, &self.options),
        };
        let Some(LoadPlan { footprint, offload, .. }) = plan else { return Ok(0) };
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
        Ok(footprint.at_start.total().saturating_sub(offload.bytes()))
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

    /// Starts the first models in the queue, as far as there is memory.
    fn advance(self: &Arc<Self>) {
        // Outside the lock, because a lease that is dropped locks again.
        for (waiter, grant) in self.start_waiting() {
            let _ = waiter.send(grant);
        }
    }

    fn start_waiting(self: &Arc<Self>) -> Vec<(oneshot::Sender<Grant>, Grant)> {
        let mut granted = Vec::new();
        let mut next_check = None;
        let mut state = self.state.lock();
        let state = &mut *state;
        state.queue.retain(|waiter| !waiter.is_closed());
        state.entries.values_mut().filter(|_| state.queue.is_empty()).for_each(|entry| entry.turn.reopen());
        let now = Instant::now();
        while let Some(first) = state.queue.first() {
            let is_current = |entry: &&Entry| entry.path == first.model.path && entry.path.exists();
            let mut leaving = Vec::new();
            if !state.entries.get(&first.id).is_some_and(|entry| is_current(&entry)) {
                let residents: Vec<Resident<'_>> =
                    state.entries.iter().map(|(id, entry)| entry.resident(id)).collect();
                match make_room(&residents, self.options.memory_budget, first.bytes, now) {
                    Room::Now(ids) => leaving = ids,
                    Room::Later { closing, recheck } => {
                        next_check = recheck;
                        for id in closing {
                            if let Some(entry) = state.entries.get_mut(&id) {
                                entry.turn.close(now);
                            }
                        }
                        break;
                    }
                }
            }
            let Some(group) = state.queue.pop() else { break };
            leaving.iter().for_each(|id| drop(state.remove(id)));
            let started = match state.entries.contains_key(&group.id) {
                true => Ok(()),
                false => self.spawn_thread(&group, state.leaving.clone()).map(|entry| {
                    state.entries.insert(group.id.clone(), entry);
                }),
            };
            let entry = state.entries.get_mut(&group.id);
            match (started, entry) {
                (Ok(()), Some(entry)) => {
                    entry.turn.reopen();
                    entry.users += group.waiters.len();
                    let lease = || Ok((self.lease(&group.id, entry.number), entry.loading.clone()));
                    granted.extend(group.waiters.into_iter().map(|waiter| (waiter, lease())));
                }
                (Err(error), _) => {
                    // Not recorded, so that the next request tries again.
                    tracing::error!(model = group.id, %error, "cannot start the thread of a model");
                    let message = format!("cannot start a thread for the model '{}': {error}", group.id);
                    granted.extend(group.waiters.into_iter().map(|waiter| (waiter, Err(busy(&*message, 1)))));
                }
                (Ok(()), None) => {}
            }
        }
        self.recheck.send_if_modified(|recheck| std::mem::replace(recheck, next_check) != next_check);
        granted
    }

    /// Starts loading a model, after the threads in `leaving` have ended.
    fn spawn_thread(
        self: &Arc<Self>,
        group: &Group<StoredModel, oneshot::Sender<Grant>>,
        leaving: Vec<SharedThread>,
    ) -> io::Result<Entry> {
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let (sender, loading) = watch::channel(Loading::Pending);
        let thread = ModelThread {
            owner: Arc::<Self>::downgrade(self),
            options: self.options.clone(),
            stored: group.model.clone(),
            number,
            leaving,
            pace: Arc::clone(&self.pace),
        };
        let builder = thread::Builder::new().name(format!("model {}", group.id)).stack_size(STACK);
        let thread = (self.spawn)(builder, thread, sender)?;
        self.loads.fetch_add(1, Ordering::Relaxed);
        let now = Instant::now();
        Ok(Entry {
            number,
            path: group.model.path.clone(),
            bytes: group.bytes,
            users: 0,
            last_used: now,
            loaded_at: now,
            load_time: Duration::ZERO,
            turn: Turn::default(),
            loading,
            thread: SharedThread::new(thread),
        })
    }
}

impl ThreadOwner for ModelCache {
    /// A model was loaded.
    fn has_loaded(&self, id: &str, number: u64, memory: LoadedMemory, took: Duration) {
        let mut state = self.state.lock();
        if let Some(entry) = state.entries.get_mut(id).filter(|entry| entry.number == number) {
            entry.bytes = memory.main.unwrap_or(entry.bytes);
            entry.load_time = took;
            entry.last_used = Instant::now();
            self.pace.loaded(entry.bytes.saturating_add(memory.cards), took);
        }
    }

    /// Whether a model may use this much of the main memory. If it needs it now, idle models are unloaded for it.
    fn resize(&self, id: &str, number: u64, bytes: u64, need: GrowthNeed) -> bool {
        let leaving: Vec<Entry> = {
            let mut state = self.state.lock();
            if state.entries.get(id).is_none_or(|entry| entry.number != number) {
                return true;
            }
            if bytes > self.options.memory_budget {
                return false;
            }
            let others = state.entries.iter().filter(|(other, _)| *other != id);
            let others: Vec<Resident<'_>> = others.map(|(id, entry)| entry.resident(id)).collect();
            // An idle model that was just used leaves, too: this request cannot wait for anything else.
            let later = Instant::now() + MEMORY_TIMEOUT;
            let leaving = match make_room(&others, self.options.memory_budget, bytes, later) {
                Room::Now(ids) if ids.is_empty() || need == GrowthNeed::Now => ids,
                Room::Now(_) | Room::Later { .. } => return false,
            };
            if let Some(entry) = state.entries.get_mut(id) {
                entry.bytes = bytes;
            }
            leaving.iter().filter_map(|id| state.remove(id)).collect()
        };
        for Entry { thread, loading, .. } in leaving {
            drop(loading);
            thread.join();
        }
        true
    }

    /// Removes a model, unless it is in use.
    fn retire(self: Arc<Self>, id: &str, number: u64) -> bool {
        let gone = {
            let mut state = self.state.lock();
            let gone = match state.entries.get(id) {
                Some(entry) if entry.number == number => entry.users == 0,
                _ => return true,
            };
            if gone {
                drop(state.remove(id));
            }
            gone
        };
        self.advance();
        gone
    }

    /// Removes a model, in use or not.
    fn remove(self: Arc<Self>, id: &str, number: u64) {
        {
            let mut state = self.state.lock();
            if state.entries.get(id).is_some_and(|entry| entry.number == number) {
                drop(state.remove(id));
            }
        }
        self.advance();
    }
}

impl Drop for ModelCache {
    /// Waits for the threads: a process must not end while llama.cpp computes.
    fn drop(&mut self) {
        let state = self.state.get_mut();
        let mut threads = std::mem::take(&mut state.leaving);
        // A thread ends with the last sender of orders, which is in its entry.
        threads.extend(std::mem::take(&mut state.entries).into_values().map(|entry| entry.thread));
        // The last owner can be such a thread. The others may wait for its end, so that it does not wait for theirs.
        if !threads.iter().any(SharedThread::is_current) {
            threads.iter().for_each(SharedThread::join);
        }
    }
}

static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// In units of 2^20, as the commands show sizes.
fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes.div_ceil(1 << 20))
}

#[cfg(test)]
#[path = "model_cache_tests.rs"]
mod tests;

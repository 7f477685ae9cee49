//! The thread of a model: loads it, serves its orders, and unloads it. Knows nothing of other models.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::mpsc as orders;
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::{Duration, Instant};

use hob_core::EngineError;
use hob_models::StoredModel;
use hob_models::tuned::file_to_load;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};

use crate::batching::{GrowthNeed, Idle, Order, Worker, WorkerParts, serve};
use crate::cards::usable_cards;
use crate::embed::Embedder;
use crate::error::plain_message;
use crate::load_queue::Pace;
use crate::loaded_model::LoadedModel;
use crate::loading::loading_turn;
use crate::model_memory::MemoryParts;
use crate::options::LlamaOptions;
use crate::prefix_store::{PrefixStore, StateIdentity};
use crate::saved_prompts::SavedPrompts;

/// The stack of a model's thread, which runs grammars of callers. It is address space until it is used.
pub(crate) const STACK: usize = 64 << 20;

/// A loaded model.
#[derive(Clone)]
pub(crate) struct Handle {
    pub(crate) loaded: Arc<LoadedModel>,
    pub(crate) orders: orders::Sender<Order>,
    /// Slots for active and waiting requests.
    pub(crate) queue: Arc<Semaphore>,
    /// How many there are.
    pub(crate) places: usize,
    pub(crate) pace: Arc<Pace>,
}

#[derive(Clone)]
pub(crate) enum Loading {
    Pending,
    Ready(Handle),
    Failed(String),
}

/// What owns the threads of models. A number distinguishes the loadings of a model.
pub(crate) trait ThreadOwner: Send + Sync {
    /// A model was loaded, and uses this memory if that is known.
    fn has_loaded(&self, id: &str, number: u64, memory: Option<MemoryParts>, took: Duration);

    /// Whether a model may use this much memory. If it needs it now, idle models are unloaded for it.
    fn resize(&self, id: &str, number: u64, wanted: MemoryParts, need: GrowthNeed) -> bool;

    /// Removes a model, unless it is in use.
    fn retire(self: Arc<Self>, id: &str, number: u64) -> bool;

    /// Removes a model, in use or not.
    fn remove(self: Arc<Self>, id: &str, number: u64);
}

/// A thread whose end several may wait for.
#[derive(Clone)]
pub(crate) struct SharedThread {
    id: ThreadId,
    /// `None` when it has ended.
    handle: Arc<Mutex<Option<JoinHandle<()>>>>,
}

impl SharedThread {
    pub(crate) fn new(handle: JoinHandle<()>) -> Self {
        SharedThread { id: handle.thread().id(), handle: Arc::new(Mutex::new(Some(handle))) }
    }

    /// Waits for its end.
    pub(crate) fn join(&self) {
        // The first one waits with the lock, and the others wait for the lock.
        let mut handle = self.handle.lock();
        if let Some(thread) = handle.take() {
            // A panic is already logged.
            let _ = thread.join();
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        let handle = self.handle.try_lock();
        handle.is_some_and(|handle| handle.as_ref().is_none_or(JoinHandle::is_finished))
    }

    pub(crate) fn is_current(&self) -> bool {
        self.id == thread::current().id()
    }
}

/// The thread of one model, from loading to unloading.
pub(crate) struct ModelThread {
    pub(crate) owner: Weak<dyn ThreadOwner>,
    pub(crate) options: LlamaOptions,
    pub(crate) stored: StoredModel,
    pub(crate) number: u64,
    pub(crate) pace: Arc<Pace>,
    /// The threads of models that are being unloaded.
    pub(crate) leaving: Vec<SharedThread>,
}

impl ModelThread {
    pub(crate) fn run(mut self, state: watch::Sender<Loading>) {
        for thread in self.leaving.drain(..) {
            thread.join();
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
        if let Some(owner) = self.owner.upgrade() {
            owner.remove(&id, self.number);
        }
        if let (Some(message), Some(state)) = (failure, state) {
            state.send_replace(Loading::Failed(message));
        }
    }

    /// Loads the model, reports it as ready, and serves. Drops `state` then: it has a sender of orders, and this thread ends with
    /// the last sender.
    fn serve(&self, state: &mut Option<watch::Sender<Loading>>) -> Result<(), EngineError> {
        let id = &self.stored.id;
        let turn = loading_turn(&usable_cards(self.options.gpu_layers));
        if state.as_ref().is_some_and(watch::Sender::is_closed) {
            // It was removed while it waited.
            return Ok(());
        }
        let started = Instant::now();
        let loaded = Arc::new(LoadedModel::load(&self.stored, &self.options)?);
        let mut worker = Worker::new(&loaded, self.parts(&loaded))?;
        let mut embedder = Embedder::new(&loaded)?;
        if let Some(owner) = self.owner.upgrade() {
            let memory = loaded.used_memory(loaded.first_cells());
            owner.has_loaded(id, self.number, memory, started.elapsed());
        }
        drop(turn);
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
            places: loaded.parallel + self.options.queue,
            pace: Arc::clone(&self.pace),
        };
        if let Some(state) = state.take() {
            state.send_replace(Loading::Ready(handle));
        }
        let keep_alive = self.options.keep_alive.max(Duration::from_millis(10));
        serve(&receiver, &mut worker, &mut embedder, |idle_for| self.when_idle(idle_for, keep_alive));
        worker.save_prompts();
        match &loaded.draft {
            Some(draft) => {
                let [guessed, right] =
                    [&draft.guessed, &draft.right].map(|count| count.load(Ordering::Relaxed));
                tracing::info!(model = %id, guessed, right, "model unloaded, with its draft model");
            }
            None => tracing::info!(model = %id, "model unloaded"),
        }
        Ok(())
    }

    /// What its worker gets from outside.
    fn parts<'model>(&self, loaded: &'model LoadedModel) -> WorkerParts<'model> {
        let (owner, id, number) = (self.owner.clone(), self.stored.id.clone(), self.number);
        let claim = move |cells: u32, need: GrowthNeed| {
            let (Some(owner), Some(wanted)) = (owner.upgrade(), loaded.used_memory(cells)) else {
                return true;
            };
            owner.resize(&id, number, wanted, need)
        };
        let file = file_to_load(&self.stored.path);
        let store = self.options.prefix_store.as_ref();
        let identity = StateIdentity { file: &file, cache: self.options.kv.as_str() };
        WorkerParts {
            claim: Box::new(claim),
            saved: SavedPrompts::new(store.and_then(|options| PrefixStore::new(options, identity))),
        }
    }

    /// Unloads the model once it has been idle for `keep_alive`.
    fn when_idle(&self, idle_for: Duration, keep_alive: Duration) -> Idle {
        if idle_for < keep_alive {
            return Idle::Wait(keep_alive - idle_for);
        }
        let retired = self.owner.upgrade().is_none_or(|owner| owner.retire(&self.stored.id, self.number));
        // A model with a new request, whose order has not arrived yet, stays.
        if retired { Idle::Leave } else { Idle::Wait(keep_alive) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{on_processor, stored_model};

    /// Counts the models that were loaded.
    #[derive(Default)]
    struct LoadCounter(Mutex<usize>);

    impl ThreadOwner for LoadCounter {
        fn has_loaded(&self, _: &str, _: u64, _: Option<MemoryParts>, _: Duration) {
            *self.0.lock() += 1;
        }

        fn resize(&self, _: &str, _: u64, _: MemoryParts, _: GrowthNeed) -> bool {
            true
        }

        fn retire(self: Arc<Self>, _: &str, _: u64) -> bool {
            true
        }

        fn remove(self: Arc<Self>, _: &str, _: u64) {}
    }

    #[test]
    fn a_model_that_was_removed_before_its_turn_is_not_loaded() {
        let stored = stored_model();
        let counter = Arc::new(LoadCounter::default());
        let load = |state: watch::Sender<Loading>| {
            let options = LlamaOptions { context: Some(256), keep_alive: Duration::ZERO, ..on_processor() };
            let thread = ModelThread {
                owner: Arc::<LoadCounter>::downgrade(&counter),
                options,
                stored: stored.clone(),
                number: 0,
                pace: Arc::default(),
                leaving: Vec::new(),
            };
            thread.run(state);
            *counter.0.lock()
        };
        let (removed, _) = watch::channel(Loading::Pending);
        assert_eq!(load(removed), 0);
        let (wanted, _waiting) = watch::channel(Loading::Pending);
        assert_eq!(load(wanted), 1);
    }
}

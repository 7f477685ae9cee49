//! Starts loading the models that wait in the queue, when there is memory for them.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::{oneshot, watch};

use super::{Grant, ModelCache};
use crate::cache_entry::Entry;
use crate::error::busy;
use crate::load_queue::{Group, Resident, Room, Turn};
use crate::model_memory::MemoryParts;
use crate::model_thread::{Loading, ModelThread, STACK, SharedThread};
use crate::placement::{WaitingModel, find_room};

/// The number of the next loading.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

impl ModelCache {
    /// Starts the first models in the queue, as far as there is memory.
    pub(super) fn advance(self: &Arc<Self>) {
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
            let is_current = |entry: &&Entry| entry.path == first.model.stored.path && entry.path.exists();
            let (mut leaving, mut memory) = (Vec::new(), MemoryParts::default());
            if !state.entries.get(&first.id).is_some_and(|entry| is_current(&entry)) {
                let residents: Vec<Resident<'_>> =
                    state.entries.iter().map(|(id, entry)| entry.resident(id)).collect();
                let (room, parts) = find_room(first, &residents, &self.options, now);
                match room {
                    Room::Now(ids) => (leaving, memory) = (ids, parts),
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
                false => {
                    let leaving = state.leaving.iter().map(|model| model.thread.clone()).collect();
                    self.spawn_thread(&group, memory, leaving).map(|entry| {
                        state.entries.insert(group.id.clone(), entry);
                    })
                }
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
                    tracing::error!(
                        model = group.id,
                        %error,
                        "the thread of a model cannot be started. Raise the limit on threads (ulimit -u)"
                    );
                    let message = format!("cannot start a thread for the model '{}': {error}", group.id);
                    granted.extend(group.waiters.into_iter().map(|waiter| (waiter, Err(busy(&*message, 1)))));
                }
                (Ok(()), None) => {}
            }
        }
        self.recheck.send_if_modified(|recheck| std::mem::replace(recheck, next_check) != next_check);
        granted
    }

    /// Starts loading a model that needs this memory, after the threads in `leaving` have ended.
    fn spawn_thread(
        self: &Arc<Self>,
        group: &Group<WaitingModel, oneshot::Sender<Grant>>,
        memory: MemoryParts,
        leaving: Vec<SharedThread>,
    ) -> io::Result<Entry> {
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let (sender, loading) = watch::channel(Loading::Pending);
        let thread = ModelThread {
            owner: Arc::<Self>::downgrade(self),
            options: self.options.clone(),
            stored: group.model.stored.clone(),
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
            path: group.model.stored.path.clone(),
            memory,
            is_loaded: false,
            planned_on: group.model.cards.clone(),
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

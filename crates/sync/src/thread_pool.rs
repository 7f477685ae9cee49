//! Threads for work that blocks. Knows nothing of what the work is, and nothing of runtimes.
//!
//! There are as many threads as jobs run at the same time, up to a limit. A job goes to the thread that became free last, so a
//! thread that is no longer needed gets no job, and ends after a while. Blocking threads of tokio take turns instead: each job wakes
//! the one that waits the longest, so after a burst all of them stay for as long as there are any jobs.

use std::collections::VecDeque;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::{Condvar, Mutex, thread};

/// The name and the limits of a pool.
#[derive(Debug, Clone, Copy)]
pub struct ThreadPoolOptions {
    /// Of each thread.
    pub name: &'static str,
    /// Threads at the same time. Further jobs wait until one is free.
    pub max_threads: usize,
    /// A thread that has no job for this long ends.
    pub idle_timeout: Duration,
}

/// Runs jobs on its threads. Dropping it drops the jobs that have not begun and ends the threads; a job that runs comes to its end.
pub struct ThreadPool {
    shared: Arc<Shared>,
}

struct Shared {
    options: ThreadPoolOptions,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Jobs for which there is no thread. Every thread has a job while one waits.
    waiting: VecDeque<Job>,
    /// Threads without a job. The last one became free last.
    free: Vec<Arc<ThreadSlot>>,
    threads: usize,
    is_closed: bool,
}

/// Does the work. Returns what delivers the result, for when the thread is free again: a caller that has its result and
/// starts the next job needs no second thread.
type Job = Box<dyn FnOnce() -> Delivery + Send>;

type Delivery = Box<dyn FnOnce() + Send>;

/// What one thread does next.
struct ThreadSlot {
    next: Mutex<Option<Next>>,
    given: Condvar,
}

enum Next {
    Run(Job),
    End,
}

impl ThreadPool {
    /// Starts no thread yet.
    pub fn new(options: ThreadPoolOptions) -> Self {
        ThreadPool { shared: Arc::new(Shared { options, state: Mutex::new(State::default()) }) }
    }

    /// Runs `work` on a thread of the pool, and passes its result, or its panic, to `deliver` on the same thread. Blocks only if
    /// the system refuses the first thread.
    pub fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
        deliver: impl FnOnce(std::thread::Result<T>) + Send + 'static,
    ) {
        let job: Job = Box::new(move || -> Delivery {
            let result = catch_unwind(AssertUnwindSafe(work));
            Box::new(move || deliver(result))
        });
        let mut state = self.shared.state.lock();
        if let Some(slot) = state.free.pop() {
            drop(state);
            slot.give(Next::Run(job));
        } else if state.threads < self.shared.options.max_threads.max(1) {
            state.threads += 1;
            drop(state);
            self.shared.start(job);
        } else {
            state.waiting.push_back(job);
        }
    }

    /// The threads that exist now, with and without a job.
    pub fn threads(&self) -> usize {
        self.shared.state.lock().threads
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.is_closed = true;
        let (free, waiting) = (mem::take(&mut state.free), mem::take(&mut state.waiting));
        drop(state);
        free.iter().for_each(|slot| slot.give(Next::End));
        // Not under the lock, because dropping a job runs code of its caller.
        drop(waiting);
    }
}

impl Shared {
    /// Starts a thread, which is counted already, with its first job.
    fn start(self: &Arc<Self>, job: Job) {
        let slot = Arc::new(ThreadSlot { next: Mutex::new(Some(Next::Run(job))), given: Condvar::new() });
        let (shared, own) = (Arc::clone(self), Arc::clone(&slot));
        let builder = thread::Builder::new().name(self.options.name.to_owned());
        if builder.spawn(move || shared.work(&own)).is_ok() {
            return;
        }
        // The system refuses another thread. One that exists does the job later; without any, the caller does it.
        let Some(Next::Run(job)) = slot.next.lock().take() else { return };
        let mut state = self.state.lock();
        state.threads -= 1;
        match state.free.pop() {
            Some(free) => {
                drop(state);
                free.give(Next::Run(job));
            }
            None if state.threads > 0 => state.waiting.push_back(job),
            None => {
                drop(state);
                job()();
            }
        }
    }

    /// What a thread does until it ends.
    fn work(&self, slot: &Arc<ThreadSlot>) {
        while let Some(job) = self.next_job(slot) {
            let deliver = job();
            self.release(slot);
            // The thread may have its next job already, so a result that panics when it is dropped must not end it.
            let _ = catch_unwind(AssertUnwindSafe(deliver));
        }
    }

    /// Gives a thread that has done its job the next one. If none waits, the thread is free.
    fn release(&self, slot: &Arc<ThreadSlot>) {
        let mut state = self.state.lock();
        let next = match state.waiting.pop_front() {
            Some(job) => Next::Run(job),
            None if state.is_closed => Next::End,
            None => return state.free.push(Arc::clone(slot)),
        };
        drop(state);
        slot.give(next);
    }

    /// Waits for the next job of a thread; `None` if the thread ends.
    fn next_job(&self, slot: &Arc<ThreadSlot>) -> Option<Job> {
        loop {
            match slot.wait(self.options.idle_timeout) {
                Some(Next::Run(job)) => return Some(job),
                Some(Next::End) => {
                    self.state.lock().threads -= 1;
                    return None;
                }
                None if self.remove_free(slot) => return None,
                // Another thread is about to give it a job.
                None => {}
            }
        }
    }

    /// Removes a thread that has had no job for long. Returns whether it is still free.
    fn remove_free(&self, slot: &Arc<ThreadSlot>) -> bool {
        let mut state = self.state.lock();
        let Some(place) = state.free.iter().position(|free| Arc::ptr_eq(free, slot)) else { return false };
        state.free.remove(place);
        state.threads -= 1;
        true
    }
}

impl ThreadSlot {
    fn give(&self, next: Next) {
        *self.next.lock() = Some(next);
        self.given.notify_one();
    }

    /// `None` if nothing was given in this time.
    fn wait(&self, timeout: Duration) -> Option<Next> {
        let mut next = self.next.lock();
        self.given.wait_while_for(&mut next, |next| next.is_none(), timeout);
        next.take()
    }
}

#[cfg(all(test, shuttle))]
#[path = "thread_pool_interleaving_tests.rs"]
mod interleavings;

#[cfg(test)]
#[cfg(not(shuttle))]
#[path = "thread_pool_tests.rs"]
mod tests;

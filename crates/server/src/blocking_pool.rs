//! Blocking or long work of the server, in one pool for all worker threads. The limit holds for the whole server, and no thread
//! waits while others have free slots.

use std::any::Any;
use std::future;
use std::panic::resume_unwind;
use std::sync::Arc;

use hob_core::LogScope;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

/// Jobs that run at once; others wait.
pub(crate) const MAX_THREADS: usize = 16;

/// Runs blocking jobs.
pub(crate) struct BlockingPool {
    /// The server's runtime, not that of a worker thread.
    runtime: Handle,
    slots: Arc<Semaphore>,
}

impl BlockingPool {
    /// Uses the current runtime.
    pub(crate) fn new() -> Self {
        BlockingPool { runtime: Handle::current(), slots: Arc::new(Semaphore::new(MAX_THREADS)) }
    }

    /// Runs `work`. A caller that leaves before it starts cancels it; once started it runs to its end.
    pub(crate) async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let result = self.run_boxed(Box::new(move || Box::new(work()))).await;
        match result.downcast() {
            Ok(result) => *result,
            Err(_) => unreachable!("the result has the type of the work"),
        }
    }

    /// Does not know the types of the work, so that it is compiled once.
    async fn run_boxed(&self, work: Box<dyn FnOnce() -> Box<dyn Any + Send> + Send>) -> Box<dyn Any + Send> {
        // The semaphore is never closed.
        let slot = Arc::clone(&self.slots).acquire_owned().await.ok();
        let mut log_scope = LogScope::current();
        let done = self.runtime.spawn_blocking(move || {
            let _slot = slot;
            log_scope.run(work)
        });
        match done.await.map_err(tokio::task::JoinError::try_into_panic) {
            Ok(done) => done,
            Err(Ok(panic)) => resume_unwind(panic),
            // The runtime is shutting down.
            Err(Err(_)) => future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn callers_of_all_threads_share_the_places() {
        let pool = Arc::new(BlockingPool::new());
        let (busy, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let callers = (0..4).map(|_| {
            let (pool, busy, most) = (Arc::clone(&pool), Arc::clone(&busy), Arc::clone(&most));
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                runtime.block_on(futures::future::join_all((0..MAX_THREADS).map(|_| {
                    let (busy, most) = (Arc::clone(&busy), Arc::clone(&most));
                    pool.run(move || {
                        most.fetch_max(busy.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        std::thread::sleep(Duration::from_millis(1));
                        busy.fetch_sub(1, Ordering::SeqCst);
                    })
                })));
            })
        });
        for caller in callers.collect::<Vec<_>>() {
            tokio::task::spawn_blocking(move || caller.join().unwrap()).await.unwrap();
        }
        assert!(most.load(Ordering::SeqCst) <= MAX_THREADS);
    }

    #[tokio::test]
    async fn a_panic_is_the_callers() {
        let pool = BlockingPool::new();
        let caught = std::panic::AssertUnwindSafe(pool.run(|| panic!("on purpose"))).catch_unwind().await;
        assert!(caught.is_err());
        assert_eq!(pool.run(|| 7).await, 7);
    }
}

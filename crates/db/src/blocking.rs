//! Runs blocking calls for asynchronous callers. Knows nothing of what a call does.

use std::cell::RefCell;
use std::future;
use std::panic::resume_unwind;
use std::sync::Arc;

use hob_sync::ThreadPool;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

thread_local! {
    /// The threads for blocking calls of this thread. Without them, its runtime has its own.
    static THREADS: RefCell<Option<Arc<ThreadPool>>> = const { RefCell::new(None) };
}

/// From now on, blocking calls of this thread run on the threads of `pool` instead of those of its runtime, so that several runtimes
/// share one set of threads. Calls that one of those threads makes itself stay with its runtime: it would wait for its own pool.
pub fn share_blocking_threads(pool: Arc<ThreadPool>) {
    THREADS.set(Some(pool));
}

/// Runs a blocking call. It runs to its end even if the handle is dropped.
pub fn spawn_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let Some(pool) = THREADS.with_borrow(Clone::clone) else { return tokio::task::spawn_blocking(work) };
    let runtime = Handle::current();
    let (sender, receiver) = oneshot::channel();
    let entered = runtime.clone();
    let work = move || {
        let _entered = entered.enter();
        work()
    };
    // A caller that left does not receive it.
    pool.run(work, move |result| drop(sender.send(result)));
    runtime.spawn(async move {
        match receiver.await {
            Ok(Ok(done)) => done,
            Ok(Err(panic)) => resume_unwind(panic),
            // The pool was dropped before the call began, so the runtime ends too.
            Err(_) => future::pending().await,
        }
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::thread::{self, ThreadId};
    use std::time::Duration;

    use hob_sync::ThreadPoolOptions;

    use super::*;

    fn pool() -> Arc<ThreadPool> {
        let options =
            ThreadPoolOptions { name: "shared", max_threads: 4, idle_timeout: Duration::from_secs(3600) };
        Arc::new(ThreadPool::new(options))
    }

    /// Runs a future on a thread and a runtime of its own, which share the threads of `pool`.
    fn on_own_runtime<T: Send>(pool: &Arc<ThreadPool>, work: impl Future<Output = T> + Send) -> T {
        let run = || {
            share_blocking_threads(Arc::clone(pool));
            tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
        };
        thread::scope(|scope| scope.spawn(run).join().unwrap())
    }

    async fn thread_of_call() -> ThreadId {
        spawn_blocking(|| thread::current().id()).await.unwrap()
    }

    #[test]
    fn runtimes_share_the_threads_and_calls_one_after_the_other_need_one() {
        let pool = pool();
        let threads: HashSet<ThreadId> = (0..8).map(|_| on_own_runtime(&pool, thread_of_call())).collect();
        assert_eq!((threads.len(), pool.threads()), (1, 1));
    }

    #[test]
    fn a_call_has_the_runtime_of_its_caller() {
        let ids = on_own_runtime(&pool(), async {
            let called = spawn_blocking(|| Handle::current().id()).await.unwrap();
            (called, Handle::current().id())
        });
        assert_eq!(ids.0, ids.1);
    }

    #[test]
    fn a_panic_is_an_error_of_the_handle() {
        let pool = pool();
        let failed =
            on_own_runtime(&pool, async { spawn_blocking::<()>(|| panic!("on purpose")).await.unwrap_err() });
        assert_eq!(failed.into_panic().downcast_ref::<&str>(), Some(&"on purpose"));
        assert_eq!(on_own_runtime(&pool, async { spawn_blocking(|| 7).await.unwrap() }), 7);
    }

    #[test]
    fn a_call_runs_to_its_end_without_its_caller() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let pool = pool();
        on_own_runtime(&pool, async { drop(spawn_blocking(move || sender.send(7).unwrap())) });
        assert_eq!(receiver.recv(), Ok(7));
    }

    #[tokio::test]
    async fn without_shared_threads_the_runtime_runs_the_call() {
        let here = thread::current().id();
        assert_ne!(thread_of_call().await, here);
    }
}

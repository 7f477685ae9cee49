//! The threads that serve connections, each with its own single-threaded runtime.
//!
//! A connection stays on its thread: the request, the engine's answer and the response never change threads. Measured
//! (`./dev bench proxy --cpu`, November 2026, medians of six runs of the same build): with tokio's multi-thread runtime, Hob uses
//! 1.1 times the processor time for a request and the same for a stream.
//!
//! Calls that block, such as those of a database, run on other threads, which all of these share.

use std::io;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, available_parallelism};
use std::time::Duration;

use hob_sync::{ThreadPool, ThreadPoolOptions};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

/// More threads would only compete in the kernel.
const MAX_WORKERS: usize = 16;

/// The threads for blocking calls of all connections (`hob_db::spawn_blocking`). There are as many as calls run at the same time. While
/// a database does not answer, each of its callers holds one, so the limit is far above what is usual.
const BLOCKING_CALLS: ThreadPoolOptions =
    ThreadPoolOptions { name: "blocking", max_threads: 128, idle_timeout: Duration::from_secs(10) };

/// Blocking threads of all runtimes together, and of one. Libraries and tools use them, for DNS lookups and files.
const MAX_RUNTIME_THREADS: usize = 256;
const MAX_THREADS_OF_RUNTIME: usize = 32;

/// All worker threads. Dropping this stops them and drops what they have not finished.
pub(crate) struct WorkerThreads {
    workers: Vec<Worker>,
    _stop: DropGuard,
}

struct Worker {
    runtime: Handle,
    connections: Arc<AtomicUsize>,
}

/// Counts a connection while it lives.
struct ConnectionCount(Arc<AtomicUsize>);

impl Drop for ConnectionCount {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl WorkerThreads {
    /// Starts one thread for each processor.
    pub(crate) fn start() -> io::Result<Self> {
        let stop = CancellationToken::new();
        // If one thread does not start, this stops the others.
        let guard = stop.clone().drop_guard();
        let count = available_parallelism().map_or(1, NonZero::get).min(MAX_WORKERS);
        let blocking = Arc::new(ThreadPool::new(BLOCKING_CALLS));
        let workers = match cfg!(simulation) {
            // A simulated machine has one thread, which runs the server already.
            true => vec![Worker { runtime: Handle::current(), connections: Arc::default() }],
            false => (0..count)
                .map(|_| Worker::start(count, Arc::clone(&blocking), stop.clone()))
                .collect::<io::Result<_>>()?,
        };
        Ok(WorkerThreads { workers, _stop: guard })
    }

    /// Runs a connection on the thread that has the fewest.
    pub(crate) fn spawn<F: Future<Output = ()> + Send + 'static>(&self, connections: &TaskTracker, work: F) {
        let fewest = self.workers.iter().min_by_key(|worker| worker.connections.load(Ordering::Relaxed));
        let Some(worker) = fewest else { return };
        worker.connections.fetch_add(1, Ordering::Relaxed);
        let count_guard = ConnectionCount(Arc::clone(&worker.connections));
        let work = async move {
            work.await;
            drop(count_guard);
        };
        connections.spawn_on(work, &worker.runtime);
    }
}

impl Worker {
    /// Starts one of `count` threads.
    fn start(count: usize, blocking: Arc<ThreadPool>, stop: CancellationToken) -> io::Result<Self> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(threads_of_runtime(count))
            .build()?;
        let handle = runtime.handle().clone();
        let thread = thread::Builder::new().name("connections".to_owned());
        thread.spawn(move || run(runtime, blocking, &stop))?;
        Ok(Worker { runtime: handle, connections: Arc::default() })
    }
}

/// The blocking threads of each of `count` runtimes.
fn threads_of_runtime(count: usize) -> usize {
    (MAX_RUNTIME_THREADS / count).min(MAX_THREADS_OF_RUNTIME)
}

fn run(runtime: Runtime, blocking: Arc<ThreadPool>, stop: &CancellationToken) {
    hob_db::share_blocking_threads(blocking);
    runtime.block_on(stop.cancelled());
    // A DNS lookup must not delay the shutdown.
    runtime.shutdown_background();
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::thread::ThreadId;

    use tokio::sync::mpsc;

    use super::*;
    use crate::blocking_pool::BlockingPool;

    /// The threads on which each worker thread runs some calls, one after the other.
    async fn threads_of_calls<F: Future<Output = ThreadId> + Send + 'static>(
        workers: &WorkerThreads,
        call: impl Fn() -> F,
    ) -> HashSet<ThreadId> {
        let mut threads = HashSet::new();
        for worker in workers.workers.iter().chain(&workers.workers) {
            let (sender, mut receiver) = mpsc::channel(1);
            let call = call();
            worker.runtime.spawn(async move { sender.send(call.await).await });
            threads.insert(receiver.recv().await.expect("a thread"));
        }
        threads
    }

    #[tokio::test]
    async fn blocking_calls_of_all_worker_threads_share_their_threads() {
        let workers = WorkerThreads::start().expect("threads");
        let call = || async { hob_db::spawn_blocking(|| thread::current().id()).await.expect("a call") };
        let mut threads = threads_of_calls(&workers, call).await;
        let pool = Arc::new(BlockingPool::new());
        let job = || {
            let pool = Arc::clone(&pool);
            async move { pool.run(|| thread::current().id()).await }
        };
        threads.extend(threads_of_calls(&workers, job).await);
        assert_eq!(threads.len(), 1, "calls one after the other need one thread");
    }

    #[test]
    fn the_threads_of_libraries_have_a_bound() {
        for count in 1..=MAX_WORKERS {
            let each = threads_of_runtime(count);
            assert!((16..=MAX_THREADS_OF_RUNTIME).contains(&each), "{count} runtimes of {each}");
            assert!(each * count <= MAX_RUNTIME_THREADS, "{count} runtimes of {each}");
        }
    }
}

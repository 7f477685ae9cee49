//! The threads that serve connections, each with its own single-threaded runtime.
//!
//! A connection stays on its thread: the request, the engine's answer and the response never change threads. Measured
//! (`./dev bench proxy --cpu`, November 2026, medians of six runs of the same build): with tokio's multi-thread runtime, Hob uses
//! 1.1 times the processor time for a request and the same for a stream.

use std::io;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, available_parallelism};

use tokio::runtime::{Builder, Handle, Runtime};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

/// More threads would only compete in the kernel.
const MAX_WORKERS: usize = 16;

/// Blocking threads of all runtimes together. Libraries use them, for DNS lookups for example; the server's own blocking work
/// runs in `BlockingPool`.
const MAX_BLOCKING_THREADS: usize = 256;

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
        let workers = match cfg!(simulation) {
            // A simulated machine has one thread, which runs the server already.
            true => vec![Worker { runtime: Handle::current(), connections: Arc::default() }],
            false => (0..count).map(|_| Worker::start(count, stop.clone())).collect::<io::Result<_>>()?,
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
    fn start(count: usize, stop: CancellationToken) -> io::Result<Self> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(MAX_BLOCKING_THREADS.div_ceil(count))
            .build()?;
        let handle = runtime.handle().clone();
        thread::Builder::new().name("connections".to_owned()).spawn(move || run(runtime, &stop))?;
        Ok(Worker { runtime: handle, connections: Arc::default() })
    }
}

fn run(runtime: Runtime, stop: &CancellationToken) {
    runtime.block_on(stop.cancelled());
    // A DNS lookup must not delay the shutdown.
    runtime.shutdown_background();
}

//! The threads that serve connections, each with a runtime of its own.
//!
//! A connection stays with the thread that got it: its request, the engine's answer and what is written back never change
//! threads. Handing them from one to another costs more than all that is done for a short request.

use std::io;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, available_parallelism};

use tokio::runtime::{Builder, Handle, Runtime};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

/// More would only wait for each other at the kernel's door.
const MAX_WORKERS: usize = 16;

/// Threads for work that blocks, of all of them together. It is work of others, such as look-ups of names: what the server itself
/// has to do goes to its one pool.
const MAX_BLOCKING_THREADS: usize = 256;

/// All of them. They stop with the value, and what they have not finished by then is dropped.
pub(crate) struct WorkerThreads {
    workers: Vec<Worker>,
    _stop: DropGuard,
}

struct Worker {
    runtime: Handle,
    connections: Arc<AtomicUsize>,
}

/// Counts a connection for as long as it lasts.
struct ConnectionCount(Arc<AtomicUsize>);

impl Drop for ConnectionCount {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl WorkerThreads {
    /// One for each processor.
    pub(crate) fn start() -> io::Result<Self> {
        let stop = CancellationToken::new();
        // Also stops those that started when one cannot.
        let guard = stop.clone().drop_guard();
        let count = available_parallelism().map_or(1, NonZero::get).min(MAX_WORKERS);
        let workers = (0..count).map(|_| Worker::start(count, stop.clone())).collect::<io::Result<_>>()?;
        Ok(WorkerThreads { workers, _stop: guard })
    }

    /// Gives a connection to the one that has the fewest.
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
    // A look-up of a name must not hold the end up.
    runtime.shutdown_background();
}

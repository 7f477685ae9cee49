//! The threads that serve connections, each with its own single-threaded runtime.
//!
//! A connection stays on its thread: the request, the engine's answer and the response never change threads. Measured
//! (`./dev bench proxy --cpu`, November 2026, medians of six runs of the same build): with tokio's multi-thread runtime, Hob uses
//! 1.1 times the processor time for a request and the same for a stream.
//!
//! Calls that block, such as those of a database, run on the blocking threads of the server's runtime (`hob_db::spawn_blocking`). With
//! a set of its own, each of these threads would keep as many as its largest burst of calls needed.

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

/// Blocking threads of all these runtimes together, and of one. Libraries and tools use them, for DNS lookups and files.
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
    /// Starts one thread for each processor. Their blocking calls run on threads of the current runtime.
    pub(crate) fn start() -> io::Result<Self> {
        let stop = CancellationToken::new();
        // If one thread does not start, this stops the others.
        let guard = stop.clone().drop_guard();
        let count = available_parallelism().map_or(1, NonZero::get).min(MAX_WORKERS);
        let server = Handle::current();
        let workers = match cfg!(simulation) {
            // A simulated machine has one thread, which runs the server already.
            true => vec![Worker { runtime: server, connections: Arc::default() }],
            false => (0..count)
                .map(|_| Worker::start(count, server.clone(), stop.clone()))
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
    /// Starts one of `count` threads, which uses the blocking threads of `server`.
    fn start(count: usize, server: Handle, stop: CancellationToken) -> io::Result<Self> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(threads_of_runtime(count))
            .build()?;
        let handle = runtime.handle().clone();
        let thread = thread::Builder::new().name("connections".to_owned());
        thread.spawn(move || run(runtime, server, &stop))?;
        Ok(Worker { runtime: handle, connections: Arc::default() })
    }
}

/// The blocking threads of each of `count` runtimes.
fn threads_of_runtime(count: usize) -> usize {
    (MAX_RUNTIME_THREADS / count).min(MAX_THREADS_OF_RUNTIME)
}

fn run(runtime: Runtime, server: Handle, stop: &CancellationToken) {
    hob_db::share_blocking_threads(server);
    runtime.block_on(stop.cancelled());
    // A DNS lookup must not delay the shutdown.
    runtime.shutdown_background();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name of the thread that runs a blocking call of a connection.
    async fn thread_of_call() -> Option<String> {
        let call = hob_db::spawn_blocking(|| thread::current().name().map(str::to_owned));
        call.await.expect("a call")
    }

    #[test]
    fn blocking_calls_of_all_worker_threads_run_on_threads_of_the_servers_runtime() {
        let server =
            Builder::new_current_thread().enable_all().thread_name("server").build().expect("a runtime");
        server.block_on(async {
            let workers = WorkerThreads::start().expect("threads");
            for worker in &workers.workers {
                let name = worker.runtime.spawn(thread_of_call()).await.expect("a task");
                assert_eq!(name.as_deref(), Some("server"));
            }
        });
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

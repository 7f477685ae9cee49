use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::ThreadId;

use super::*;

/// So long that no thread of a test ends by itself.
const LONG: Duration = Duration::from_secs(3600);

fn pool(max_threads: usize, idle_timeout: Duration) -> ThreadPool {
    ThreadPool::new(ThreadPoolOptions { name: "test", max_threads, idle_timeout })
}

/// A job that waits until it is released.
struct HeldJob {
    release: Sender<()>,
    began: Receiver<ThreadId>,
    done: Receiver<()>,
}

impl HeldJob {
    fn start(pool: &ThreadPool) -> Self {
        let (release, released) = channel::<()>();
        let (begin, began) = channel();
        let (finish, done) = channel();
        let work = move || {
            begin.send(thread::current().id()).unwrap();
            released.recv().unwrap();
        };
        pool.run(work, move |_| finish.send(()).unwrap());
        HeldJob { release, began, done }
    }

    /// Waits until it runs.
    fn thread(&self) -> ThreadId {
        self.began.recv().unwrap()
    }

    /// Waits until its thread is free.
    fn end(self) {
        self.release.send(()).unwrap();
        self.done.recv().unwrap();
    }
}

/// The result of a job, or its panic.
fn result_of<T: Send + 'static>(
    pool: &ThreadPool,
    work: impl FnOnce() -> T + Send + 'static,
) -> thread::Result<T> {
    let (sender, receiver) = channel();
    pool.run(work, move |result| sender.send(result).unwrap());
    receiver.recv().unwrap()
}

#[test]
fn jobs_one_after_the_other_need_one_thread() {
    let pool = pool(8, LONG);
    let first = result_of(&pool, || thread::current().id()).unwrap();
    for _ in 0..100 {
        assert_eq!(result_of(&pool, || thread::current().id()).unwrap(), first);
    }
    assert_eq!(pool.threads(), 1);
}

#[test]
fn there_are_as_many_threads_as_jobs_and_no_more_than_the_limit() {
    let pool = pool(2, LONG);
    let (first, second) = (HeldJob::start(&pool), HeldJob::start(&pool));
    let threads = [first.thread(), second.thread()];
    assert_ne!(threads[0], threads[1]);
    let third = HeldJob::start(&pool);
    assert_eq!(pool.threads(), 2);
    assert!(third.began.try_recv().is_err(), "it waits for a free thread");
    first.end();
    assert_eq!(third.thread(), threads[0]);
    second.end();
    third.end();
    assert_eq!(pool.threads(), 2);
}

#[test]
fn the_thread_that_became_free_last_gets_the_next_job() {
    let pool = pool(8, LONG);
    let held: Vec<HeldJob> = (0..3).map(|_| HeldJob::start(&pool)).collect();
    let threads: Vec<ThreadId> = held.iter().map(HeldJob::thread).collect();
    held.into_iter().for_each(HeldJob::end);
    for _ in 0..10 {
        assert_eq!(result_of(&pool, || thread::current().id()).unwrap(), threads[2], "the others can end");
    }
}

#[test]
fn a_thread_without_a_job_ends() {
    let pool = pool(8, Duration::ZERO);
    let held: Vec<HeldJob> = (0..3).map(|_| HeldJob::start(&pool)).collect();
    assert_eq!(pool.threads(), 3);
    held.into_iter().for_each(HeldJob::end);
    while pool.threads() > 0 {
        thread::yield_now();
    }
    assert_eq!(result_of(&pool, || 7).unwrap(), 7, "the next job starts a thread");
}

#[test]
fn a_panic_is_the_result_and_the_thread_stays() {
    let pool = pool(8, LONG);
    let first = result_of(&pool, || thread::current().id()).unwrap();
    let panic = result_of::<()>(&pool, || panic!("on purpose")).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"on purpose"));
    assert_eq!(result_of(&pool, || thread::current().id()).unwrap(), first);
}

#[test]
fn a_dropped_pool_ends_its_threads_and_the_jobs_that_wait() {
    let pool = pool(2, LONG);
    let shared = Arc::clone(&pool.shared);
    let (first, second) = (HeldJob::start(&pool), HeldJob::start(&pool));
    assert_ne!(first.thread(), second.thread());
    let waiting = HeldJob::start(&pool);
    drop(pool);
    assert!(waiting.began.recv().is_err(), "it is dropped");
    first.end();
    second.end();
    while shared.state.lock().threads > 0 {
        thread::yield_now();
    }
}

//! Callers that start jobs while threads become free, end and are ended, in many orders: every job runs once.

use super::*;
use crate::atomic::{AtomicUsize, Ordering};
use crate::{explore, mpsc};

/// So short that a thread may end at any moment; see `hob_sync`.
const SHORT: Duration = Duration::from_millis(1);

/// So long that a thread ends only with its pool.
const LONG: Duration = Duration::from_secs(60);

const THREADS: usize = 2;

/// Two callers with two jobs each, one after the other, on at most two threads. The pool is dropped after the last result.
fn every_job_runs_once(idle_timeout: Duration) {
    let options = ThreadPoolOptions { name: "test", max_threads: THREADS, idle_timeout };
    let pool = Arc::new(ThreadPool::new(options));
    let (running, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let caller = || {
        let (pool, running, done) = (Arc::clone(&pool), Arc::clone(&running), Arc::clone(&done));
        thread::spawn(move || {
            for _ in 0..2 {
                let (sender, receiver) = mpsc::channel();
                let (running, done) = (Arc::clone(&running), Arc::clone(&done));
                let work = move || {
                    let others = running.fetch_add(1, Ordering::SeqCst);
                    thread::yield_now();
                    running.fetch_sub(1, Ordering::SeqCst);
                    done.fetch_add(1, Ordering::SeqCst);
                    others
                };
                pool.run(work, move |others| sender.send(others.ok()).expect("a caller"));
                let others = receiver.recv().expect("a delivery").expect("a result");
                assert!(others < THREADS, "more jobs run than there are threads");
                assert!(pool.threads() <= THREADS);
            }
        })
    };
    let callers: Vec<_> = (0..2).map(|_| caller()).collect();
    for caller in callers {
        caller.join().expect("no panic");
    }
    assert_eq!(done.load(Ordering::SeqCst), 4);
}

#[test]
fn every_job_runs_once_while_free_threads_end() {
    explore(|| every_job_runs_once(SHORT));
}

#[test]
fn every_job_runs_once_and_the_threads_end_with_the_pool() {
    explore(|| every_job_runs_once(LONG));
}

#[test]
fn jobs_that_wait_are_dropped_with_the_pool_and_one_that_runs_ends() {
    explore(|| {
        let pool = ThreadPool::new(ThreadPoolOptions { name: "test", max_threads: 1, idle_timeout: LONG });
        let (sender, receiver) = mpsc::channel();
        for number in 0..2 {
            let sender = sender.clone();
            pool.run(move || number, move |number| sender.send(number.ok()).expect("a receiver"));
        }
        drop(sender);
        drop(pool);
        let mut results = Vec::new();
        while let Ok(result) = receiver.recv() {
            results.push(result);
        }
        assert!([&[Some(0)][..], &[Some(0), Some(1)]].contains(&&results[..]), "{results:?}");
    });
}

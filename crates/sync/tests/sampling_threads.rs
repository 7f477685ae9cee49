//! The threads that choose the tokens of the embedded engine, in many orders. The file under test is that of the embedded engine: its
//! own tests build llama.cpp, which is not needed here.

#![cfg(shuttle)]

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use hob_sync::{explore, thread};

#[path = "../../llama/src/sampling_threads.rs"]
mod sampling_threads;

use sampling_threads::SamplingThreads;

/// Bytes of the stack of a thread.
const STACK: usize = 1 << 20;

/// Enough for a thread of its own for every task.
const SCORES: usize = 1 << 20;

/// The number of a task whose work panics.
const BROKEN: usize = 100;

/// A step: adds one to every task. Whether all of its work succeeded.
fn step(threads: &mut SamplingThreads, tasks: &mut [usize]) -> bool {
    let work = |task: &mut usize| {
        thread::yield_now();
        if *task == BROKEN {
            // Without the panic hook, which would report a failure of the test.
            resume_unwind(Box::new("broken"));
        }
        *task += 1;
    };
    catch_unwind(AssertUnwindSafe(|| threads.run(tasks, SCORES, work))).is_ok()
}

#[test]
fn a_step_ends_after_every_task_was_done_once_and_the_threads_end_with_the_model() {
    explore(|| {
        let mut threads = SamplingThreads::new(3, STACK);
        let mut tasks = [0; 4];
        for steps in 1..=2 {
            assert!(step(&mut threads, &mut tasks));
            assert_eq!(tasks, [steps; 4]);
        }
        // With fewer answers, some threads have nothing to do.
        assert!(step(&mut threads, &mut tasks[..2]));
        assert_eq!(tasks, [3, 3, 2, 2]);
    });
}

#[test]
fn a_panic_of_one_thread_ends_the_step_after_the_others_and_not_the_next_step() {
    explore(|| {
        let mut threads = SamplingThreads::new(3, STACK);
        let mut tasks = [0, BROKEN, 2];
        assert!(!step(&mut threads, &mut tasks));
        assert_eq!(tasks, [1, BROKEN, 3], "what borrows from the step has ended");
        tasks[1] = 1;
        assert!(step(&mut threads, &mut tasks));
        assert_eq!(tasks, [2, 2, 4]);
    });
}

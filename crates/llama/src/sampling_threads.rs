//! Threads that help the thread of a model to choose the tokens of many answers. Knows nothing of tokens.
//!
//! They exist as long as the model: starting threads for every step would take as long as the choices.
#![expect(unsafe_code, reason = "work that borrows from the caller is lent to threads that outlive the call")]

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use hob_sync::mpsc::{Sender, channel};
use hob_sync::thread::{Builder, JoinHandle};
use hob_sync::{Condvar, Mutex};

/// The least scores for one thread, roughly. Waking a thread takes about as long as reading so many.
const MIN_SCORES: usize = 1 << 17;

/// Longer than any work. A shorter wait may end early in the tests of many orders.
const LONG: Duration = Duration::from_secs(60);

/// The work of a step, for one thread. It may be called only by a thread that [`Step::enter`] has let in.
type Part = Box<dyn FnOnce() + Send>;

/// A panic that ended a part.
type Panic = Box<dyn Any + Send>;

/// Which threads work on the tasks of a step.
#[derive(Default)]
struct Step {
    state: Mutex<StepState>,
    /// A thread has left.
    left: Condvar,
}

#[derive(Default)]
struct StepState {
    /// The caller waits for the end. A thread that is only now awake has nothing to do, and the caller does not wait for it.
    is_over: bool,
    /// The threads that work.
    inside: usize,
    panic: Option<Panic>,
}

impl Step {
    /// Whether a thread may begin. It must [`Step::leave`] then.
    fn enter(&self) -> bool {
        let mut state = self.state.lock();
        let may = !state.is_over;
        state.inside += usize::from(may);
        may
    }

    fn leave(&self, panic: Option<Panic>) {
        let mut state = self.state.lock();
        state.inside -= 1;
        if panic.is_some() {
            state.panic = panic;
        }
        self.left.notify_one();
    }

    /// Lets no thread begin, waits for those that have begun, and returns the last panic.
    fn end(&self) -> Option<Panic> {
        let mut state = self.state.lock();
        state.is_over = true;
        while state.inside > 0 {
            self.left.wait_while_for(&mut state, |state| state.inside > 0, LONG);
        }
        state.panic.take()
    }
}

/// The threads of one model.
pub(crate) struct SamplingThreads {
    /// The most threads, with the one of the caller.
    limit: usize,
    /// Bytes of the stack of each.
    stack: usize,
    parts: Vec<Sender<(Arc<Step>, Part)>>,
    threads: Vec<JoinHandle<()>>,
}

impl SamplingThreads {
    /// At most `limit` threads, with the one of the caller. Each starts when it is needed first.
    pub(crate) fn new(limit: usize, stack: usize) -> Self {
        SamplingThreads { limit, stack, parts: Vec::new(), threads: Vec::new() }
    }

    /// Does `work` for every task, each of which reads `scores` scores, and returns when all are done. Uses several threads if
    /// that is faster. The order of the tasks is not defined.
    pub(crate) fn run<T: Send>(&mut self, tasks: &mut [T], scores: usize, work: impl Fn(&mut T) + Sync) {
        let wanted = parts(tasks.len(), scores, self.limit);
        self.start(wanted.saturating_sub(1));
        // Each thread takes the next task. The first ones begin while the others are woken, and tasks take different times. A thread
        // that wakes after the last task is not waited for: that can take as long as the tasks.
        let queue = Mutex::new(tasks.iter_mut());
        let take_and_work = || {
            // A function, so that the queue is locked only for this.
            let next = || queue.lock().next();
            while let Some(task) = next() {
                work(task);
            }
        };
        let ending = EndOfStep { step: Arc::default() };
        for thread in self.parts.iter().take(wanted.saturating_sub(1)) {
            let part: Box<dyn FnOnce() + Send + '_> = Box::new(&take_and_work);
            // SAFETY: only a thread that was let into the step calls the part, and `ending` waits for all of them, also while a
            // panic unwinds, and so before what the part borrows ends: it is declared after all of that, and is dropped before
            // it. Dropping a part that was not called only frees its box, which has a reference.
            let part = unsafe { std::mem::transmute::<Box<dyn FnOnce() + Send + '_>, Part>(part) };
            // A thread ends only with this object. If one has ended, the others do its share.
            let _ = thread.send((Arc::clone(&ending.step), part));
        }
        let mut panic = None;
        // A task that panics does not end the others, also if no other thread is awake yet.
        while let Err(caught) = catch_unwind(AssertUnwindSafe(&take_and_work)) {
            panic = Some(caught);
        }
        if let Some(panic) = ending.step.end().or(panic) {
            resume_unwind(panic);
        }
    }

    /// Starts threads until there are so many, or as many as the system allows.
    fn start(&mut self, count: usize) {
        while self.threads.len() < count {
            let (sender, parts) = channel::<(Arc<Step>, Part)>();
            let body = move || {
                for (step, part) in parts {
                    if step.enter() {
                        // The part is dropped before the thread leaves, with what it borrows.
                        let panic = catch_unwind(AssertUnwindSafe(part)).err();
                        step.leave(panic);
                    }
                }
            };
            match Builder::new().name("sampling".to_owned()).stack_size(self.stack).spawn(body) {
                Ok(thread) => {
                    self.threads.push(thread);
                    self.parts.push(sender);
                }
                Err(error) => {
                    tracing::warn!(
                        %error,
                        "no further thread can be started to choose tokens, so answers are slower. Raise the \
                         limit on threads (ulimit -u, or TasksMax= in the unit)"
                    );
                    self.limit = self.threads.len() + 1;
                    return;
                }
            }
        }
    }
}

impl Drop for SamplingThreads {
    fn drop(&mut self) {
        self.parts.clear();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Ends a step when it is dropped.
struct EndOfStep {
    step: Arc<Step>,
}

impl Drop for EndOfStep {
    fn drop(&mut self) {
        self.step.end();
    }
}

/// The number of threads for the tasks of a step.
fn parts(tasks: usize, scores: usize, limit: usize) -> usize {
    let worthwhile = tasks.saturating_mul(scores).saturating_add(MIN_SCORES / 2) / MIN_SCORES;
    worthwhile.min(tasks).min(limit).max(1)
}

// Not for `crates/sync/tests/sampling_threads.rs`, which compiles this file without llama.cpp.
#[cfg(test)]
#[cfg(not(shuttle))]
mod tests {
    use std::collections::HashSet;
    use std::sync::Barrier;
    use std::thread::{ThreadId, current};

    use super::*;

    const STACK: usize = 1 << 20;

    #[test]
    fn few_scores_are_for_one_thread() {
        assert_eq!(parts(0, 128_256, 8), 1);
        assert_eq!(parts(1, 262_144, 8), 1);
        assert_eq!(parts(8, 4_096, 8), 1);
        assert_eq!(parts(8, 32_768, 8), 2);
        assert_eq!(parts(8, 128_256, 8), 8);
        assert_eq!(parts(8, 131_072, 8), 8);
        assert_eq!(parts(32, 131_072, 8), 8);
        assert_eq!(parts(32, 131_072, 1), 1);
        assert_eq!(parts(32, 131_072, 0), 1);
        assert_eq!(parts(usize::MAX, usize::MAX, 3), 3);
    }

    #[test]
    fn every_task_is_done_once_however_many_threads_there_are() {
        for limit in [1, 2, 3, 8] {
            let mut threads = SamplingThreads::new(limit, STACK);
            for count in [0, 1, 2, 7, 8, 9, 32] {
                let mut tasks: Vec<(usize, usize)> = (0..count).map(|at| (at, 0)).collect();
                threads.run(&mut tasks, MIN_SCORES, |(at, result)| *result += *at * 2 + 1);
                let expected: Vec<(usize, usize)> = (0..count).map(|at| (at, at * 2 + 1)).collect();
                assert_eq!(tasks, expected, "{limit} threads");
            }
        }
    }

    #[test]
    fn the_same_threads_are_used_again() {
        let mut threads = SamplingThreads::new(3, STACK);
        let mut used: HashSet<ThreadId> = HashSet::new();
        let all_have_one = Barrier::new(3);
        for _ in 0..20 {
            let mut tasks = [None; 3];
            threads.run(&mut tasks, MIN_SCORES, |thread| {
                *thread = Some(current().id());
                all_have_one.wait();
            });
            used.extend(tasks.into_iter().flatten());
        }
        assert!(used.len() == 3 && used.contains(&current().id()), "{used:?}");
    }

    #[test]
    fn a_long_task_does_not_delay_the_others() {
        let mut threads = SamplingThreads::new(2, STACK);
        let mut tasks: Vec<(usize, Option<ThreadId>)> = (0..9).map(|at| (at, None)).collect();
        let last = Barrier::new(2);
        // The first task ends with the last, so the other thread does all between.
        threads.run(&mut tasks, MIN_SCORES, |(at, thread)| {
            *thread = Some(current().id());
            if matches!(at, 0 | 8) {
                last.wait();
            }
        });
        assert!(tasks[1..].iter().all(|(_, thread)| *thread == tasks[8].1 && *thread != tasks[0].1));
    }

    #[test]
    fn few_scores_start_no_thread() {
        let mut threads = SamplingThreads::new(8, STACK);
        threads.run(&mut [(); 8], 100, |()| {});
        assert!(threads.threads.is_empty());
    }

    #[test]
    fn a_panic_reaches_the_caller_after_all_parts_ended() {
        let mut threads = SamplingThreads::new(4, STACK);
        for broken in 0..4 {
            let mut tasks: Vec<(usize, bool)> = (0..4).map(|at| (at, false)).collect();
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                threads.run(&mut tasks, MIN_SCORES, |(at, done)| {
                    assert!(*at != broken, "as a broken grammar would");
                    *done = true;
                });
            }));
            assert!(outcome.is_err());
            let done: Vec<usize> = tasks.iter().filter(|(_, done)| *done).map(|(at, _)| *at).collect();
            assert_eq!(done, (0..4).filter(|at| *at != broken).collect::<Vec<_>>());
        }
        let mut tasks = [0; 4];
        threads.run(&mut tasks, MIN_SCORES, |task| *task += 1);
        assert_eq!(tasks, [1; 4], "the threads continue");
    }
}

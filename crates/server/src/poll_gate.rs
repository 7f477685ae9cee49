//! Polls a future or a stream only after it has asked for it.
//!
//! hyper polls the body of a stream three times for each piece, and the task of a connection polls everything it waits for whenever
//! one of it is ready. Each such poll of a stream passes all layers down to the socket of the engine, and each poll of a
//! `CancellationToken` takes locks that all connections share. A gate answers them by one atomic operation.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use parking_lot::Mutex;

/// Stands between a task and something it polls.
pub(crate) struct PollGate {
    shared: Arc<Shared>,
    /// What is behind the gate wakes this one.
    waker: Waker,
    /// The waker in `shared`, which can be compared without a lock.
    task: Waker,
}

struct Shared {
    woken: AtomicBool,
    task: Mutex<Waker>,
}

impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.task.lock().wake_by_ref();
    }
}

impl PollGate {
    /// An open gate: nothing has been polled yet.
    pub(crate) fn new() -> Self {
        let task = Waker::noop().clone();
        let shared = Arc::new(Shared { woken: AtomicBool::new(true), task: Mutex::new(task.clone()) });
        PollGate { waker: Waker::from(Arc::clone(&shared)), shared, task }
    }

    /// Whether a poll can have a result: it is the first, the one before had a result, or the task was woken since. Otherwise
    /// the task will be woken.
    pub(crate) fn is_open(&mut self, context: &Context<'_>) -> bool {
        self.register(context);
        self.shared.woken.load(Ordering::Acquire)
    }

    /// Polls what is behind the gate if it is open.
    pub(crate) fn poll<T>(
        &mut self,
        context: &Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        self.register(context);
        if !self.shared.woken.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        let polled = poll(&mut Context::from_waker(&self.waker));
        if polled.is_ready() {
            self.open();
        }
        polled
    }

    /// The waker with which what is behind the gate is polled, if the gate is open: for several polls in a row. If the last of them has a
    /// result, the gate must be opened again.
    pub(crate) fn enter(&mut self, context: &Context<'_>) -> Option<Waker> {
        self.register(context);
        self.shared.woken.swap(false, Ordering::AcqRel).then(|| self.waker.clone())
    }

    /// Opens the gate: the last poll had a result.
    pub(crate) fn open(&self) {
        self.shared.woken.store(true, Ordering::Release);
    }

    /// Comes before the flag is read: a call in between would wake the task that polled before.
    fn register(&mut self, context: &Context<'_>) {
        if !self.task.will_wake(context.waker()) {
            self.task.clone_from(context.waker());
            self.shared.task.lock().clone_from(context.waker());
        }
    }

    /// Waits for `future` through a gate.
    pub(crate) async fn wait<F: Future>(future: F) -> F::Output {
        let mut future = std::pin::pin!(future);
        let mut gate = PollGate::new();
        std::future::poll_fn(|context| gate.poll(context, |context| Pin::as_mut(&mut future).poll(context)))
            .await
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::poll_fn;

    use futures::FutureExt;
    use futures::channel::oneshot;
    use futures::task::{ArcWake, waker};

    use super::*;

    #[derive(Default)]
    struct Task {
        woken: AtomicBool,
    }

    impl ArcWake for Task {
        fn wake_by_ref(task: &Arc<Self>) {
            task.woken.store(true, Ordering::SeqCst);
        }
    }

    impl Task {
        fn poll<F: Future + Unpin>(self: &Arc<Self>, future: &mut F) -> Poll<F::Output> {
            future.poll_unpin(&mut Context::from_waker(&waker(Arc::clone(self))))
        }

        fn was_woken(&self) -> bool {
            self.woken.swap(false, Ordering::SeqCst)
        }
    }

    #[test]
    fn what_has_nothing_to_say_is_polled_once() {
        let (sender, mut receiver) = oneshot::channel();
        let polls = Cell::new(0);
        let counted = poll_fn(|context| {
            polls.set(polls.get() + 1);
            receiver.poll_unpin(context)
        });
        let mut waiting = Box::pin(PollGate::wait(counted));
        let task = Arc::new(Task::default());
        for _ in 0..3 {
            assert_eq!(task.poll(&mut waiting), Poll::Pending);
        }
        assert_eq!((polls.get(), task.was_woken()), (1, false));
        sender.send(7).unwrap();
        assert!(task.was_woken());
        assert_eq!(task.poll(&mut waiting), Poll::Ready(Ok(7)));
        assert_eq!(polls.get(), 2);
    }

    #[test]
    fn the_task_that_polled_last_is_woken() {
        let (sender, receiver) = oneshot::channel();
        let mut waiting = Box::pin(PollGate::wait(receiver));
        let (first, second) = (Arc::new(Task::default()), Arc::new(Task::default()));
        assert_eq!(first.poll(&mut waiting), Poll::Pending);
        assert_eq!(second.poll(&mut waiting), Poll::Pending);
        sender.send(7).unwrap();
        assert_eq!((first.was_woken(), second.was_woken()), (false, true));
        assert_eq!(second.poll(&mut waiting), Poll::Ready(Ok(7)));
    }

    #[test]
    fn a_gate_that_was_entered_stays_closed_until_a_result_or_a_call() {
        let task = Arc::new(Task::default());
        let waker = waker(Arc::clone(&task));
        let context = Context::from_waker(&waker);
        let mut gate = PollGate::new();
        let inside = gate.enter(&context).unwrap();
        assert!(gate.enter(&context).is_none() && !gate.is_open(&context));
        gate.open();
        assert!(gate.is_open(&context) && gate.enter(&context).is_some());
        inside.wake();
        assert!(task.was_woken() && gate.enter(&context).is_some());
    }

    #[test]
    fn what_wakes_while_it_is_polled_is_polled_again() {
        let mut polls = 0;
        let yields = poll_fn(move |context| {
            polls += 1;
            if polls == 3 {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        });
        let mut waiting = Box::pin(PollGate::wait(yields));
        let task = Arc::new(Task::default());
        assert_eq!(task.poll(&mut waiting), Poll::Pending);
        assert!(task.was_woken());
        assert_eq!(task.poll(&mut waiting), Poll::Pending);
        assert!(task.was_woken());
        assert_eq!(task.poll(&mut waiting), Poll::Ready(()));
    }
}

//! Runs blocking calls for asynchronous callers. Knows nothing of what a call does.

use std::any::Any;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::runtime::Handle;
use tokio::task::{JoinError, JoinHandle};

thread_local! {
    /// The runtime whose blocking threads this thread uses. `None` for those of the runtime that it runs.
    static SHARED: RefCell<Option<Handle>> = const { RefCell::new(None) };
}

/// From now on, blocking calls of this thread run on the blocking threads of `runtime`, so that several runtimes share one set of
/// threads. That runtime must outlive the calls: it cancels those that have not begun when it ends.
pub fn share_blocking_threads(runtime: Handle) {
    SHARED.set(Some(runtime));
}

/// A blocking call. The future ends with its result, or with the panic that ended it.
pub struct BlockingCall<T> {
    task: JoinHandle<Box<dyn Any + Send>>,
    result: PhantomData<fn() -> T>,
}

impl<T: 'static> Future for BlockingCall<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let result = ready!(Pin::new(&mut self.task).poll(context))?;
        match result.downcast() {
            Ok(result) => Poll::Ready(Ok(*result)),
            Err(_) => unreachable!("the result has the type of the call"),
        }
    }
}

/// Runs a blocking call. It runs to its end even if the future is dropped. Inside it, the current runtime is that of the caller.
pub fn spawn_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> BlockingCall<T> {
    BlockingCall { task: spawn(Box::new(move || Box::new(work()))), result: PhantomData }
}

/// Does not know the types of the call. Otherwise all that tokio does for a task would be compiled for every call: an eighth of the
/// server.
fn spawn(work: Box<dyn FnOnce() -> Box<dyn Any + Send> + Send>) -> JoinHandle<Box<dyn Any + Send>> {
    let Some(shared) = SHARED.with_borrow(Clone::clone) else { return tokio::task::spawn_blocking(work) };
    let caller = Handle::current();
    shared.spawn_blocking(move || {
        let _entered = caller.enter();
        work()
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;

    use tokio::runtime::{Builder, Runtime};

    use super::*;

    /// A runtime whose blocking threads have this name.
    fn runtime(name: &str) -> Runtime {
        Builder::new_current_thread().enable_all().thread_name(name).build().unwrap()
    }

    /// Runs a future on a thread and a runtime of its own, which share the blocking threads of `shared`.
    fn on_own_runtime<T: Send>(shared: &Runtime, work: impl Future<Output = T> + Send) -> T {
        let run = || {
            share_blocking_threads(shared.handle().clone());
            runtime("own").block_on(work)
        };
        thread::scope(|scope| scope.spawn(run).join().unwrap())
    }

    /// The name of the thread that runs a call.
    async fn thread_of_call() -> Option<String> {
        spawn_blocking(|| thread::current().name().map(str::to_owned)).await.unwrap()
    }

    #[test]
    fn runtimes_share_the_blocking_threads_of_one() {
        let shared = runtime("shared");
        for _ in 0..2 {
            assert_eq!(on_own_runtime(&shared, thread_of_call()).as_deref(), Some("shared"));
        }
    }

    #[test]
    fn without_shared_threads_the_runtime_of_the_caller_runs_the_call() {
        assert_eq!(runtime("own").block_on(thread_of_call()).as_deref(), Some("own"));
    }

    #[test]
    fn a_call_has_the_runtime_of_its_caller() {
        let ids = on_own_runtime(&runtime("shared"), async {
            let called = spawn_blocking(|| Handle::current().id()).await.unwrap();
            (called, Handle::current().id())
        });
        assert_eq!(ids.0, ids.1);
    }

    #[test]
    fn a_panic_is_an_error_of_the_handle() {
        let shared = runtime("shared");
        let failed = on_own_runtime(&shared, async {
            spawn_blocking::<()>(|| panic!("on purpose")).await.unwrap_err()
        });
        assert_eq!(failed.into_panic().downcast_ref::<&str>(), Some(&"on purpose"));
        assert_eq!(on_own_runtime(&shared, thread_of_call()).as_deref(), Some("shared"));
    }

    #[test]
    fn a_call_runs_to_its_end_without_its_caller() {
        let shared = runtime("shared");
        let (release, released) = channel::<()>();
        let (sender, receiver) = channel();
        let work = move || {
            released.recv().unwrap();
            sender.send(7).unwrap();
        };
        on_own_runtime(&shared, async { drop(spawn_blocking(work)) });
        // The runtime of the caller has ended.
        release.send(()).unwrap();
        assert_eq!(receiver.recv(), Ok(7));
    }
}

//! The request that a thread works on, so that the log lines of the work name it. Knows nothing of how a line is written.

use std::borrow::Cow;
use std::cell::RefCell;
use std::future::poll_fn;
use std::mem;
use std::pin::pin;
use std::sync::Arc;

thread_local! {
    static CURRENT: RefCell<Option<Arc<str>>> = const { RefCell::new(None) };
}

/// The work of one request, as the log knows it. A span of `tracing` would do the same, but is stored, written and looked up for every
/// request, and few requests log anything.
#[derive(Debug, Clone, Default)]
pub struct LogScope {
    request_id: Option<Arc<str>>,
}

impl LogScope {
    /// Work of the request with this id.
    pub fn of(request_id: Arc<str>) -> Self {
        LogScope { request_id: Some(request_id) }
    }

    /// That of the work that runs now.
    pub fn current() -> Self {
        LogScope { request_id: CURRENT.with_borrow(Clone::clone) }
    }

    /// Does a piece of the work.
    pub fn run<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let _entered = Entered::new(&mut self.request_id);
        work()
    }

    /// Does the work to its end.
    pub async fn within<F: Future>(mut self, work: F) -> F::Output {
        let mut work = pin!(work);
        poll_fn(|context| self.run(|| work.as_mut().poll(context))).await
    }
}

/// Exchanges the current id, and exchanges it back at the end, also after a panic.
struct Entered<'a>(&'a mut Option<Arc<str>>);

impl<'a> Entered<'a> {
    fn new(request_id: &'a mut Option<Arc<str>>) -> Self {
        exchange(request_id);
        Entered(request_id)
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        exchange(self.0);
    }
}

fn exchange(request_id: &mut Option<Arc<str>>) {
    CURRENT.with_borrow_mut(|current| mem::swap(current, request_id));
}

/// A log line with the id of the request whose work wrote it, if there is one.
pub fn with_request_id(line: &[u8]) -> Cow<'_, [u8]> {
    CURRENT.with_borrow(|current| {
        let Some(id) = current else { return Cow::Borrowed(line) };
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        Cow::Owned([text, &b" request_id="[..], id.as_bytes(), &b"\n"[..]].concat())
    })
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn line() -> String {
        String::from_utf8(with_request_id(b"WARN it broke\n").into_owned()).unwrap()
    }

    #[test]
    fn a_line_names_the_request_whose_work_wrote_it() {
        let mut outer = LogScope::of("one".into());
        let lines = outer.run(|| {
            let inner = LogScope::of("two".into()).run(line);
            let of_another_thread = {
                let mut scope = LogScope::current();
                std::thread::spawn(move || scope.run(line)).join().unwrap()
            };
            [inner, line(), of_another_thread]
        });
        assert_eq!(
            lines,
            [
                "WARN it broke request_id=two\n",
                "WARN it broke request_id=one\n",
                "WARN it broke request_id=one\n"
            ]
        );
        assert_eq!(line(), "WARN it broke\n");
    }

    #[test]
    fn work_that_waits_leaves_the_thread_to_others() {
        let mut is_second = false;
        let work = poll_fn(move |_| match mem::replace(&mut is_second, true) {
            true => Poll::Ready(line()),
            false => Poll::Pending,
        });
        let mut work = pin!(LogScope::of("one".into()).within(work));
        let mut context = Context::from_waker(Waker::noop());
        assert_eq!(work.as_mut().poll(&mut context), Poll::Pending);
        assert_eq!(line(), "WARN it broke\n");
        assert_eq!(
            work.as_mut().poll(&mut context),
            Poll::Ready("WARN it broke request_id=one\n".to_owned())
        );
    }

    #[test]
    fn a_panic_ends_the_work() {
        let mut scope = LogScope::of("one".into());
        let panicked =
            catch_unwind(AssertUnwindSafe(|| scope.run(|| assert!(line().is_empty(), "on purpose"))));
        assert!(panicked.is_err());
        assert_eq!(line(), "WARN it broke\n");
        assert_eq!(scope.run(line), "WARN it broke request_id=one\n");
    }
}

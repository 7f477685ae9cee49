//! Threads for grammars: with a large stack, a limited number, and a time limit.
//!
//! Schemas are untrusted, and reading them is recursive. A thread that takes too long keeps its slot until it ends, so that slow
//! schemas wait for each other and never block a connection.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use hob_core::EngineError;
use tokio::sync::{Semaphore, oneshot};

use crate::error::{bad_request, busy, interrupted};

/// The stack is address space until it is used.
const STACK: usize = 256 << 20;

/// Grammars that are built concurrently.
const MAX_THREADS: usize = 2;

/// How long a request waits for its grammar.
const TIMEOUT: Duration = Duration::from_secs(5);

/// How long a request waits for a thread.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs `work` on a thread for grammars. A timeout names `field`.
pub(crate) async fn run<T: Send + 'static>(
    field: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, EngineError> {
    static SLOTS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(MAX_THREADS)));
    let place = tokio::time::timeout(QUEUE_TIMEOUT, Arc::clone(&SLOTS).acquire_owned())
        .await
        .map_err(|_| busy("other schemas are being read; try again in a moment", 1))?
        .map_err(|error| interrupted(error.to_string()))?;
    let (done, outcome) = oneshot::channel();
    let body = move || {
        // The caller may have disconnected.
        let _ = done.send(work());
        drop(place);
    };
    std::thread::Builder::new()
        .name("grammar".to_owned())
        .stack_size(STACK)
        .spawn(body)
        .map_err(|error| busy(format!("cannot start a thread to read a schema: {error}"), 1))?;
    match tokio::time::timeout(TIMEOUT, outcome).await {
        Ok(Ok(made)) => Ok(made),
        Ok(Err(_)) => Err(bad_request(format!("'{field}' has a schema that cannot be read"), Some(field))),
        Err(_) => Err(bad_request(
            format!("'{field}' has a schema that takes more than {} s to read", TIMEOUT.as_secs()),
            Some(field),
        )),
    }
}

/// Runs the check of a finished answer, which waits only for other checks.
pub(crate) async fn check<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, EngineError> {
    static SLOTS: Semaphore = Semaphore::const_new(MAX_THREADS);
    let _place = SLOTS.acquire().await.map_err(|error| interrupted(error.to_string()))?;
    let (done, outcome) = oneshot::channel();
    std::thread::Builder::new()
        .name("check".to_owned())
        .stack_size(STACK)
        // The caller may have disconnected.
        .spawn(move || drop(done.send(work())))
        .map_err(|error| busy(format!("cannot start a thread to check an answer: {error}"), 1))?;
    outcome.await.map_err(|_| interrupted("the check of an answer failed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_that_panics_is_an_error_of_its_field() {
        let error = run("response_format", || panic!("as a broken library would")).await.map(|()| "done");
        let refused = matches!(error, Err(EngineError::Refused { status: 400, param: Some(param), .. }) if param == "response_format");
        assert!(refused);
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_takes_too_long_is_not_waited_for() {
        let (done, finished) = std::sync::mpsc::channel::<()>();
        // Paused time advances while all wait, so the limit is reached first.
        let outcome = run("tools", move || finished.recv().is_ok()).await.map_err(|error| error.to_string());
        assert!(outcome.as_ref().is_err_and(|error| error.contains("takes more than 5 s")), "{outcome:?}");
        drop(done);
    }

    #[tokio::test]
    async fn deep_recursion_fits_on_the_stack() {
        fn depth(left: usize) -> usize {
            let pad = std::hint::black_box([left; 64]);
            if left == 0 { 0 } else { depth(left - 1) + usize::from(pad[0] == left) }
        }
        assert_eq!(run("tools", || depth(100_000)).await.ok(), Some(100_000));
    }
}

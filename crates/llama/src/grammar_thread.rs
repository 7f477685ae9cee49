//! Threads for grammars: with a large stack, a limited number, and a time limit.
//!
//! Schemas are untrusted, and reading them is recursive. A thread that takes too long keeps its slot until it ends, so that slow
//! schemas wait for each other and never block a connection.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Duration;

use hob_core::EngineError;
use tokio::sync::oneshot::error::RecvError;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Instant, timeout};

use crate::error::{bad_request, busy, interrupted};

/// The stack is address space until it is used.
const STACK: usize = 256 << 20;

/// Grammars that are built concurrently.
const MAX_THREADS: usize = 2;

/// The processor time of a grammar.
const TIMEOUT: Duration = Duration::from_secs(5);

/// How long a request waits for its grammar. On a busy machine, a thread gets only a part of the time that passes.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// How long a request waits for a thread.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs `work` on a thread for grammars. A timeout names `field`.
pub(crate) async fn run<T: Send + 'static>(
    field: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, EngineError> {
    static SLOTS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(MAX_THREADS)));
    let place = timeout(QUEUE_TIMEOUT, Arc::clone(&SLOTS).acquire_owned())
        .await
        .map_err(|_| busy("other schemas are being read; try again in a moment", 1))?
        .map_err(|error| interrupted(error.to_string()))?;
    let (done, outcome) = oneshot::channel();
    let clock = Arc::new(ThreadClock::default());
    let clock_of_thread = Arc::clone(&clock);
    let body = move || {
        clock_of_thread.begin();
        // The caller may have disconnected.
        let _ = done.send(work());
        drop(place);
    };
    std::thread::Builder::new()
        .name("grammar".to_owned())
        .stack_size(STACK)
        .spawn(body)
        .map_err(|error| busy(format!("cannot start a thread to read a schema: {error}"), 1))?;
    match in_time(&clock, outcome).await {
        Some(Ok(made)) => Ok(made),
        Some(Err(_)) => Err(bad_request(format!("'{field}' has a schema that cannot be read"), Some(field))),
        None => Err(bad_request(
            format!("'{field}' has a schema that takes more than {} s to read", TIMEOUT.as_secs()),
            Some(field),
        )),
    }
}

/// The outcome of a thread; `None` if it takes too long.
async fn in_time<T>(clock: &ThreadClock, mut outcome: oneshot::Receiver<T>) -> Option<Result<T, RecvError>> {
    let end = Instant::now() + LONGEST_WAIT;
    let mut wait = TIMEOUT;
    loop {
        let waited = timeout(wait, &mut outcome).await;
        if waited.is_ok() || wait.is_zero() {
            return waited.ok();
        }
        // Where the processor time is not known, all time counts.
        let left = clock.used().map_or(Duration::ZERO, |used| TIMEOUT.saturating_sub(used));
        wait = left.min(end.saturating_duration_since(Instant::now()));
    }
}

/// The processor time of a thread.
#[derive(Debug, Default)]
struct ThreadClock {
    /// Where Linux tells it, once the thread runs; `None` on other systems.
    file: OnceLock<Option<PathBuf>>,
}

impl ThreadClock {
    /// Linux counts the time of programs in hundredths of a second.
    const MILLISECONDS_PER_TICK: u64 = 10;

    /// Called by the thread itself.
    fn begin(&self) {
        let thread = fs::read_link("/proc/thread-self").ok();
        // It is set once.
        let _ = self.file.set(thread.map(|thread| Path::new("/proc").join(thread).join("stat")));
    }

    /// The time so far; `None` if it is not known.
    fn used(&self) -> Option<Duration> {
        let Some(file) = self.file.get() else { return Some(Duration::ZERO) };
        let told = fs::read_to_string(file.as_ref()?).ok()?;
        // After the name of the thread, which may contain anything: the state, ten numbers, and the times of its own code and of
        // the kernel.
        let (_, numbers) = told.rsplit_once(") ")?;
        let ticks: Option<u64> =
            numbers.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().ok()).sum();
        Some(Duration::from_millis(ticks?.saturating_mul(Self::MILLISECONDS_PER_TICK)))
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

    #[tokio::test(start_paused = true)]
    async fn a_thread_that_gets_no_processor_has_more_time() {
        let (done, outcome) = oneshot::channel();
        // Its thread does not run yet.
        let clock = ThreadClock::default();
        let late = async {
            tokio::time::sleep(TIMEOUT * 4).await;
            done.send("made").expect("it is waited for");
        };
        let (outcome, ()) = tokio::join!(in_time(&clock, outcome), late);
        assert_eq!(outcome, Some(Ok("made")));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_processor_time_of_a_thread_is_known() {
        let clock = ThreadClock::default();
        clock.begin();
        let began = clock.used().expect("Linux tells it");
        // This loop is what takes time.
        while clock.used().expect("Linux tells it") < began + Duration::from_millis(50) {}
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

//! Work that blocks, such as a call of the store.

use std::time::Duration;

use hob_core::Backoff;

/// The pauses between attempts while the store does not answer.
pub(crate) const STORE_BACKOFF: Backoff =
    Backoff { first: Duration::from_millis(200), longest: Duration::from_secs(5) };

/// Runs blocking work; `None` if the program ends.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    hob_db::spawn_blocking(work).await.ok()
}

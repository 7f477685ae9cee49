//! Work that blocks, such as a call of the store.

/// Runs blocking work; `None` if the program ends.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    hob_db::spawn_blocking(work).await.ok()
}

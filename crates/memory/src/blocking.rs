//! Work that blocks, away from the threads that must not.

use hob_core::MemoryError;

/// Runs `work` on a thread that may block. A panic in it is a panic here.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, MemoryError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Ok(done),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime ends, and everything with it.
            Err(_) => Err(MemoryError::Stopped),
        },
    }
}

//! Work of the database beside async work.

use anyhow::Result;
use hob_db::DbResult;

/// Runs work of the database on a thread that may block.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> DbResult<T> + Send + 'static,
) -> Result<T> {
    Ok(tokio::task::spawn_blocking(work).await??)
}

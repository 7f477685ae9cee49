//! Opens the database on first use, and runs its blocking calls on blocking threads.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use hob_db::DatabaseError;
use parking_lot::Mutex;

use crate::store::{MemoryStore, SqliteMemoryStore};
use crate::types::MemoryError;

#[derive(Clone)]
pub(crate) struct LazyStore {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    open: OnceLock<Arc<dyn MemoryStore>>,
    /// Held by the thread that opens it.
    opening: Mutex<()>,
}

impl LazyStore {
    pub(crate) fn new(path: PathBuf) -> Self {
        LazyStore { inner: Arc::new(Inner { path, open: OnceLock::new(), opening: Mutex::new(()) }) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.inner.path
    }

    /// The database, if there is one.
    pub(crate) async fn find(&self) -> Result<Option<Arc<dyn MemoryStore>>, MemoryError> {
        // Every question of an agent comes here, and most users have no memory. Checking for the file is faster than a blocking
        // thread.
        if self.inner.open.get().is_none() && matches!(self.inner.path.try_exists(), Ok(false)) {
            return Ok(None);
        }
        self.get(SqliteMemoryStore::find).await
    }

    /// The database, which is created if necessary.
    pub(crate) async fn open(&self) -> Result<Arc<dyn MemoryStore>, MemoryError> {
        let open = self.get(|path| SqliteMemoryStore::open(path).map(Some)).await?;
        open.ok_or(MemoryError::Empty)
    }

    async fn get(
        &self,
        open: fn(&Path) -> Result<Option<SqliteMemoryStore>, DatabaseError>,
    ) -> Result<Option<Arc<dyn MemoryStore>>, MemoryError> {
        if let Some(store) = self.inner.open.get() {
            return Ok(Some(Arc::clone(store)));
        }
        let inner = Arc::clone(&self.inner);
        blocking(move || inner.get(open)).await?.map_err(store_failed)
    }
}

impl Inner {
    fn get(
        &self,
        open: fn(&Path) -> Result<Option<SqliteMemoryStore>, DatabaseError>,
    ) -> Result<Option<Arc<dyn MemoryStore>>, DatabaseError> {
        let _turn = self.opening.lock();
        if let Some(store) = self.open.get() {
            return Ok(Some(Arc::clone(store)));
        }
        Ok(open(&self.path)?.map(|store| Arc::clone(self.open.get_or_init(|| Arc::new(store)))))
    }
}

/// Runs `work` on a blocking thread. A panic is propagated.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, MemoryError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Ok(done),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down.
            Err(_) => Err(MemoryError::Stopped),
        },
    }
}

pub(crate) fn store_failed(error: DatabaseError) -> MemoryError {
    MemoryError::Store(Box::new(error))
}

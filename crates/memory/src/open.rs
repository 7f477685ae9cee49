//! Opens the memory's database when it is first needed, and runs its blocking calls off the runtime's threads.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use hob_db::DatabaseError;

use crate::store::MemoryStore;
use crate::types::MemoryError;

#[derive(Clone)]
pub(crate) struct Shelf {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    open: OnceLock<MemoryStore>,
    /// Held by the one who opens it.
    opening: Mutex<()>,
}

impl Shelf {
    pub(crate) fn new(path: PathBuf) -> Self {
        Shelf { inner: Arc::new(Inner { path, open: OnceLock::new(), opening: Mutex::new(()) }) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.inner.path
    }

    /// The database, if there is one.
    pub(crate) async fn find(&self) -> Result<Option<MemoryStore>, MemoryError> {
        // Every question of an agent comes here, in most houses for nothing. A look at a name takes less than asking a
        // thread that may wait.
        if self.inner.open.get().is_none() && matches!(self.inner.path.try_exists(), Ok(false)) {
            return Ok(None);
        }
        self.get(MemoryStore::find).await
    }

    /// The database, made where there is none.
    pub(crate) async fn open(&self) -> Result<MemoryStore, MemoryError> {
        let open = self.get(|path| MemoryStore::open(path).map(Some)).await?;
        open.ok_or(MemoryError::Empty)
    }

    async fn get(
        &self,
        open: fn(&Path) -> Result<Option<MemoryStore>, DatabaseError>,
    ) -> Result<Option<MemoryStore>, MemoryError> {
        if let Some(store) = self.inner.open.get() {
            return Ok(Some(store.clone()));
        }
        let inner = Arc::clone(&self.inner);
        blocking(move || inner.get(open)).await?.map_err(store_failed)
    }
}

impl Inner {
    fn get(
        &self,
        open: fn(&Path) -> Result<Option<MemoryStore>, DatabaseError>,
    ) -> Result<Option<MemoryStore>, DatabaseError> {
        let _turn = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = self.open.get() {
            return Ok(Some(store.clone()));
        }
        Ok(open(&self.path)?.map(|store| self.open.get_or_init(|| store).clone()))
    }
}

/// Runs `work` on a thread that may block. A panic in it is a panic here.
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

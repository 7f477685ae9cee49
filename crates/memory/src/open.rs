//! Opens the database on first use, and runs its blocking calls on blocking threads.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use hob_db::{DatabaseError, DbResult, Storage};
use parking_lot::Mutex;

use crate::store::{MemoryStore, PostgresMemoryStore, SqliteMemoryStore};
use crate::types::MemoryError;

#[derive(Clone)]
pub(crate) struct LazyStore {
    inner: Arc<Inner>,
}

struct Inner {
    storage: Storage,
    open: OnceLock<Arc<dyn MemoryStore>>,
    /// Held by the thread that opens it.
    opening: Mutex<()>,
}

/// Whether an empty memory is created.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Create,
    Leave,
}

impl LazyStore {
    pub(crate) fn new(storage: Storage) -> Self {
        LazyStore { inner: Arc::new(Inner { storage, open: OnceLock::new(), opening: Mutex::new(()) }) }
    }

    /// The file of the database, if it is one.
    pub(crate) fn path(&self) -> Option<&Path> {
        match &self.inner.storage {
            Storage::Sqlite(database) => Some(database.path()),
            Storage::Postgres(_) => None,
        }
    }

    /// The database, if there is one. A server with no source has none.
    pub(crate) async fn find(&self) -> Result<Option<Arc<dyn MemoryStore>>, MemoryError> {
        // Every question of an agent comes here, and most users have no memory. Checking for the file is faster than a blocking
        // thread.
        if self.inner.open.get().is_none() && !self.inner.storage.exists() {
            return Ok(None);
        }
        self.get(Missing::Leave).await
    }

    /// The database, which is created if necessary.
    pub(crate) async fn open(&self) -> Result<Arc<dyn MemoryStore>, MemoryError> {
        self.get(Missing::Create).await?.ok_or(MemoryError::Empty)
    }

    async fn get(&self, missing: Missing) -> Result<Option<Arc<dyn MemoryStore>>, MemoryError> {
        if let Some(store) = self.inner.open.get() {
            return Ok(Some(Arc::clone(store)));
        }
        let inner = Arc::clone(&self.inner);
        blocking(move || inner.get(missing)).await?.map_err(store_failed)
    }
}

impl Inner {
    fn get(&self, missing: Missing) -> DbResult<Option<Arc<dyn MemoryStore>>> {
        let _turn = self.opening.lock();
        if let Some(store) = self.open.get() {
            return Ok(Some(Arc::clone(store)));
        }
        let store: Arc<dyn MemoryStore> = match &self.storage {
            Storage::Sqlite(database) => {
                let database = match missing {
                    Missing::Create => Some(database.open()?),
                    Missing::Leave => database.find()?,
                };
                let Some(database) = database else { return Ok(None) };
                Arc::new(SqliteMemoryStore::new(database)?)
            }
            Storage::Postgres(database) => {
                let store = PostgresMemoryStore::new(database.clone());
                if missing == Missing::Leave && !store.has_sources()? {
                    return Ok(None);
                }
                Arc::new(store)
            }
        };
        Ok(Some(Arc::clone(self.open.get_or_init(|| store))))
    }
}

/// Runs `work` on a blocking thread. A panic is propagated.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, MemoryError> {
    match hob_db::spawn_blocking(work).await {
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

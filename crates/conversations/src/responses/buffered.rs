//! Writes responses a moment later, many at once: a response is stored for nearly every answer, and a transaction for each would cost
//! more than the answer. A response that waits is found like any other.

use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use hob_db::{DbResult, FailureLog};

use super::store::{SqliteResponseStore, WaitingResponse};
use super::{
    Appended, ConversationAppend, ConversationItem, FoundItems, ItemPage, ResponseChain, ResponseOwner,
    ResponseStore, StoredConversation, StoredResponse,
};

/// How long responses are collected before they are written.
const COLLECTED_FOR: Duration = Duration::from_millis(25);

/// The pause after a failed write.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Responses that wait, and their bytes. Further ones are written at once.
const MAX_WAITING: usize = 1_024;
const MAX_WAITING_BYTES: usize = 16 << 20;

/// The responses and conversations in a database, with responses that are written a moment later.
pub struct BufferedResponseStore {
    shared: Arc<Shared>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    store: SqliteResponseStore,
    waiting: Mutex<Waiting>,
    changed: Condvar,
    /// Held while responses are written, so that two writers keep their order.
    writing: Mutex<()>,
}

#[derive(Default)]
struct Waiting {
    next: Vec<Arc<WaitingResponse>>,
    /// Those that are being written.
    current: Vec<Arc<WaitingResponse>>,
    bytes: usize,
    is_closed: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl BufferedResponseStore {
    pub fn new(store: SqliteResponseStore) -> Self {
        let shared =
            Shared { store, waiting: Mutex::default(), changed: Condvar::new(), writing: Mutex::new(()) };
        BufferedResponseStore { shared: Arc::new(shared), writer: Mutex::new(None) }
    }

    /// The store, when nothing waits for it any more.
    fn written(&self) -> DbResult<&SqliteResponseStore> {
        self.shared.write()?;
        Ok(&self.shared.store)
    }

    /// Starts the thread that writes, if it does not run yet.
    fn start(&self) -> bool {
        let mut writer = lock(&self.writer);
        if writer.is_none() {
            let shared = Arc::clone(&self.shared);
            match thread::Builder::new().name("responses".to_owned()).spawn(move || shared.run()) {
                Ok(started) => *writer = Some(started),
                Err(error) => tracing::warn!(
                    %error,
                    "responses cannot be stored: no thread can be started. Raise the limit on threads \
                     (ulimit -u, or TasksMax= in the unit)"
                ),
            }
        }
        writer.is_some()
    }
}

impl Drop for BufferedResponseStore {
    fn drop(&mut self) {
        lock(&self.shared.waiting).is_closed = true;
        self.shared.changed.notify_all();
        if let Some(writer) = lock(&self.writer).take() {
            // A panic of the writer was reported already.
            let _ = writer.join();
        }
    }
}

impl Shared {
    /// Writes what waits, until the store is closed.
    fn run(&self) {
        let mut failures =
            FailureLog::new("responses are not stored; Hob keeps trying", "responses are stored again");
        loop {
            let idle = lock(&self.waiting);
            let idle = self
                .changed
                .wait_while(idle, |waiting| waiting.next.is_empty() && !waiting.is_closed)
                .unwrap_or_else(PoisonError::into_inner);
            let is_closed = idle.is_closed;
            if !is_closed {
                drop(self.pause(idle, COLLECTED_FOR));
            } else {
                drop(idle);
            }
            let written = self.write();
            failures.note(&written);
            if is_closed {
                if let Err(error) = written {
                    let lost = lock(&self.waiting).next.len();
                    tracing::warn!(
                        %error,
                        lost,
                        "responses were not stored before Hob stopped. 'hob doctor' checks the database"
                    );
                }
                return;
            }
            if written.is_err() {
                drop(self.pause(lock(&self.waiting), RETRY_AFTER));
            }
        }
    }

    /// Waits, but not for a store that is closed.
    fn pause<'a>(&self, waiting: MutexGuard<'a, Waiting>, pause: Duration) -> MutexGuard<'a, Waiting> {
        let waited = self.changed.wait_timeout_while(waiting, pause, |waiting| !waiting.is_closed);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn write(&self) -> DbResult<()> {
        let _order = lock(&self.writing);
        let batch = {
            let mut waiting = lock(&self.waiting);
            waiting.current = mem::take(&mut waiting.next);
            waiting.current.clone()
        };
        if batch.is_empty() {
            return Ok(());
        }
        let written = self.store.save_all(&batch);
        let mut waiting = lock(&self.waiting);
        let current = mem::take(&mut waiting.current);
        match &written {
            Ok(()) => waiting.bytes -= current.iter().map(|one| one.bytes()).sum::<usize>(),
            // They are tried again.
            Err(_) => {
                waiting.next.splice(..0, current);
            }
        }
        written
    }

    fn find(&self, owner: &ResponseOwner, id: &str) -> Option<StoredResponse> {
        let waiting = lock(&self.waiting);
        let mut all = waiting.current.iter().chain(&waiting.next);
        all.find(|one| one.response.id == id && one.owner == *owner).map(|one| one.response.clone())
    }
}

impl WaitingResponse {
    fn bytes(&self) -> usize {
        self.response.body.len() + self.response.input.len()
    }
}

impl ResponseStore for BufferedResponseStore {
    fn save_soon(
        &self,
        owner: &ResponseOwner,
        response: StoredResponse,
        now: SystemTime,
    ) -> Result<(), StoredResponse> {
        if !self.start() {
            return Err(response);
        }
        let one = WaitingResponse { owner: owner.clone(), response, at: now };
        let bytes = one.bytes();
        let mut waiting = lock(&self.shared.waiting);
        let count = waiting.next.len() + waiting.current.len();
        if count >= MAX_WAITING || waiting.bytes + bytes > MAX_WAITING_BYTES {
            return Err(one.response);
        }
        waiting.bytes += bytes;
        waiting.next.push(Arc::new(one));
        if waiting.next.len() == 1 {
            self.shared.changed.notify_all();
        }
        Ok(())
    }

    fn flush(&self) -> DbResult<()> {
        self.shared.write()
    }

    fn save(
        &self,
        owner: &ResponseOwner,
        response: &StoredResponse,
        append: Option<&ConversationAppend>,
        now: SystemTime,
    ) -> DbResult<Appended> {
        self.written()?.save(owner, response, append, now)
    }

    fn update(
        &self,
        owner: &ResponseOwner,
        response: &StoredResponse,
        append: Option<&ConversationAppend>,
        now: SystemTime,
    ) -> DbResult<Option<Appended>> {
        self.written()?.update(owner, response, append, now)
    }

    fn renew(&self, owner: &ResponseOwner, id: &str) -> DbResult<bool> {
        self.shared.store.renew(owner, id)
    }

    fn find(&self, owner: &ResponseOwner, id: &str) -> DbResult<Option<StoredResponse>> {
        match self.shared.find(owner, id) {
            Some(response) => Ok(Some(response)),
            None => self.shared.store.find(owner, id),
        }
    }

    fn chain(&self, owner: &ResponseOwner, id: &str, now: SystemTime) -> DbResult<ResponseChain> {
        self.written()?.chain(owner, id, now)
    }

    fn delete(&self, owner: &ResponseOwner, id: &str) -> DbResult<bool> {
        self.written()?.delete(owner, id)
    }

    fn create_conversation(&self, owner: &ResponseOwner, conversation: &StoredConversation) -> DbResult<()> {
        self.shared.store.create_conversation(owner, conversation)
    }

    fn conversation(&self, owner: &ResponseOwner, id: &str) -> DbResult<Option<StoredConversation>> {
        self.shared.store.conversation(owner, id)
    }

    fn set_metadata(&self, owner: &ResponseOwner, id: &str, metadata: &str) -> DbResult<bool> {
        self.shared.store.set_metadata(owner, id, metadata)
    }

    fn delete_conversation(&self, owner: &ResponseOwner, id: &str) -> DbResult<bool> {
        self.shared.store.delete_conversation(owner, id)
    }

    fn items(
        &self,
        owner: &ResponseOwner,
        id: &str,
        page: &ItemPage,
        now: SystemTime,
    ) -> DbResult<FoundItems> {
        self.shared.store.items(owner, id, page, now)
    }

    fn item(&self, owner: &ResponseOwner, id: &str, item: &str) -> DbResult<Option<ConversationItem>> {
        self.shared.store.item(owner, id, item)
    }

    fn append(
        &self,
        owner: &ResponseOwner,
        append: &ConversationAppend,
        now: SystemTime,
    ) -> DbResult<Appended> {
        self.shared.store.append(owner, append, now)
    }

    fn delete_item(&self, owner: &ResponseOwner, id: &str, item: &str) -> DbResult<bool> {
        self.shared.store.delete_item(owner, id, item)
    }
}

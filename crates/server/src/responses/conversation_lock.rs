//! One response at a time is added to a conversation. A second one would answer the same history, and its items would come between
//! a call and its output.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hob_conversations::ResponseOwner;

use crate::error::{ApiError, ApiResult};

type Key = (ResponseOwner, String);

/// The conversations that a response is being added to.
#[derive(Default)]
pub(crate) struct ConversationLocks {
    taken: Mutex<HashSet<Key>>,
}

/// Keeps other responses out of a conversation until this is dropped.
pub(super) struct ConversationLock {
    locks: Arc<ConversationLocks>,
    key: Key,
}

impl ConversationLocks {
    pub(super) fn acquire(
        self: &Arc<Self>,
        owner: &ResponseOwner,
        conversation: &str,
    ) -> ApiResult<ConversationLock> {
        let key = (owner.clone(), conversation.to_owned());
        match self.taken().insert(key.clone()) {
            true => Ok(ConversationLock { locks: Arc::clone(self), key }),
            false => Err(ApiError::conversation_locked()),
        }
    }

    fn taken(&self) -> MutexGuard<'_, HashSet<Key>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConversationLock {
    fn drop(&mut self) {
        self.locks.taken().remove(&self.key);
    }
}

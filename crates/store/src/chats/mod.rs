//! Conversations at the terminal, kept so that they can be gone on with. Knows nothing of who asks or answers.
//!
//! Everything is bounded: old conversations make room for new ones.

mod keep;
mod look;

pub use keep::{ChatId, Kept, Turn, TurnEnding, TurnNumber};
pub use look::{ChatSummary, Conversation};

use crate::store::Store;

/// The conversations in a store. Cheap to clone. Everything blocks.
#[derive(Clone)]
pub struct Chats {
    store: Store,
}

impl Chats {
    pub fn new(store: Store) -> Self {
        Chats { store }
    }
}

#[cfg(test)]
#[path = "chats_tests.rs"]
mod tests;

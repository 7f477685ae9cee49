//! Conversations on messaging channels: what was taken in and not yet answered, and what was said.
//!
//! Knows nothing of channels themselves: a message is a text with an identity. Everything is bounded, because strangers write.

mod history;
mod inbox;

pub use history::{Exchange, Line, Speaker, Thread};
pub use inbox::Unsettled;

use crate::store::Store;

/// The conversations in a store. Cheap to clone. Everything blocks.
#[derive(Clone)]
pub struct Conversations {
    store: Store,
}

impl Conversations {
    pub fn new(store: Store) -> Self {
        Conversations { store }
    }
}

#[cfg(test)]
#[path = "conversations_tests.rs"]
mod tests;

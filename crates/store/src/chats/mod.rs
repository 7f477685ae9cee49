//! Conversations at the terminal, kept so that they can be gone on with. Knows nothing of who asks or answers.
//!
//! Everything is bounded: old conversations make room for new ones.

mod keep;
mod look;

use hob_db::{Database, Migrations};

pub use keep::{ChatId, Kept, Turn, TurnEnding, TurnNumber};
pub use look::{ChatSummary, Conversation};

/// The steps that make its tables.
pub const MIGRATIONS: Migrations = Migrations {
    capability: "conversations",
    steps: &[include_str!("../../migrations/conversations/1_chats.sql")],
    legacy_versions: &[5],
};

/// The conversations in a database. Cheap to clone. Everything blocks.
#[derive(Clone)]
pub struct Chats {
    database: Database,
}

impl Chats {
    pub fn new(database: Database) -> Self {
        Chats { database }
    }
}

#[cfg(test)]
#[path = "chats_tests.rs"]
mod tests;

//! Conversations at the terminal, kept so that they can be gone on with. Knows nothing of who asks or answers.
//!
//! Everything is bounded: old conversations make room for new ones.

mod read;
pub(super) mod write;

use hob_db::{Database, Migrations};

pub use read::{ChatSummary, Conversation};
pub use write::{ChatId, Kept, Turn, TurnEnding, TurnNumber};

/// The steps that make its tables.
pub const MIGRATIONS: Migrations = Migrations {
    capability: "conversations",
    steps: &[include_str!("../../../migrations/1_chats.sql")],
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

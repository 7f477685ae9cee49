//! Conversations on messaging channels: what was taken in and not yet answered, and what was said.
//!
//! Knows nothing of channels themselves: a message is a text with an identity. Everything is bounded, because strangers write.

pub(super) mod history;
pub(super) mod inbox;

use hob_db::{Database, Migrations};

pub use history::{Exchange, Line, Speaker, Thread};
pub use inbox::Unsettled;

/// The steps that make its tables.
pub const MIGRATIONS: Migrations = Migrations {
    capability: "channels",
    steps: &[include_str!("../../../migrations/1_messages.sql")],
    legacy_versions: &[3],
};

/// The conversations in a database. Cheap to clone. Everything blocks.
#[derive(Clone)]
pub struct Conversations {
    pub(super) database: Database,
}

impl Conversations {
    pub fn new(database: Database) -> Self {
        Conversations { database }
    }
}

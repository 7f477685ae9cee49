//! Messages and conversations in SQLite. Every change is one immediate transaction.

mod history;
mod inbox;

use std::time::SystemTime;

use hob_db::{Database, DatabaseError, Migrations};

use super::{
    ChannelStore, Exchange, HistoryLine, MAX_RECENT, RecentLine, SENT_TO, ThreadKey, UnsettledMessage,
};

/// The migrations of the tables of channels.
pub const MIGRATIONS: Migrations = Migrations {
    capability: "channels",
    steps: &[include_str!("../../../migrations/1_messages.sql")],
    legacy_versions: &[3],
};

#[derive(Clone)]
pub struct SqliteChannelStore {
    database: Database,
}

impl SqliteChannelStore {
    pub fn new(database: Database) -> Self {
        SqliteChannelStore { database }
    }
}

impl ChannelStore for SqliteChannelStore {
    fn take(
        &self,
        identity: Option<&str>,
        message: &str,
        now: SystemTime,
    ) -> Result<Option<i64>, DatabaseError> {
        self.database.write(|transaction| inbox::take(transaction, identity, message, now))
    }

    fn settle(&self, id: i64) -> Result<bool, DatabaseError> {
        self.database.write(|transaction| inbox::settle(transaction, id))
    }

    fn reopen(&self, id: i64, message: &str) -> Result<(), DatabaseError> {
        self.database.write(|transaction| inbox::reopen(transaction, id, message))
    }

    fn unsettled(&self) -> Result<Vec<UnsettledMessage>, DatabaseError> {
        self.database.read(inbox::unsettled)
    }

    fn history(&self, thread: ThreadKey<'_>, most: usize) -> Result<Vec<HistoryLine>, DatabaseError> {
        self.database.read(|connection| history::last_lines(connection, thread, most))
    }

    fn remember(
        &self,
        thread: ThreadKey<'_>,
        exchange: Exchange<'_>,
        now: SystemTime,
    ) -> Result<(), DatabaseError> {
        self.database.write(|transaction| history::add_exchange(transaction, thread, exchange, now))
    }

    fn note_sent(&self, thread: ThreadKey<'_>, content: &str, now: SystemTime) -> Result<(), DatabaseError> {
        let conversation = format!("{SENT_TO}{}", thread.conversation);
        let thread = ThreadKey { conversation: &conversation, ..thread };
        self.database.write(|transaction| history::add_sent(transaction, thread, content, now))
    }

    fn recent(&self, most: usize) -> Result<Vec<RecentLine>, DatabaseError> {
        let lines = self.database.read(|connection| history::recent(connection, most.min(MAX_RECENT)))?;
        Ok(lines.into_iter().map(RecentLine::shown).collect())
    }
}

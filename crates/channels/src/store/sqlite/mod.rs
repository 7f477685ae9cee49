//! Messages and conversations in SQLite. Every change is one immediate transaction.

mod history;
mod inbox;

use std::time::SystemTime;

use hob_db::{Database, DatabaseError, Migrations};

use super::{ChannelStore, Exchange, HistoryLine, ThreadKey, UnsettledMessage};

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

    fn settle(&self, id: i64) -> Result<(), DatabaseError> {
        self.database.write(|transaction| inbox::set_message(transaction, id, None))
    }

    fn reopen(&self, id: i64, message: &str) -> Result<(), DatabaseError> {
        self.database.write(|transaction| inbox::set_message(transaction, id, Some(message)))
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
}

#[cfg(test)]
mod tests {
    use super::super::MAX_REMEMBERED;
    use super::*;

    const NOW: SystemTime = SystemTime::UNIX_EPOCH;

    #[test]
    fn old_messages_are_forgotten() {
        let store = SqliteChannelStore::new(Database::in_memory(&[MIGRATIONS]).expect("opened"));
        let first = store.take(Some("a"), "hello", NOW).expect("written").expect("new");
        // As if as many others had come since.
        let skip = format!(
            "UPDATE sqlite_sequence SET seq = {} WHERE name = 'channel_inbox'",
            first + MAX_REMEMBERED - 1
        );
        store.database.writer().execute_batch(&skip).expect("written");
        store.take(Some("b"), "x", NOW).expect("written").expect("new");
        assert_eq!(store.unsettled().expect("read").len(), 1);
        assert!(store.take(Some("a"), "hello", NOW).expect("written").is_some());
    }
}

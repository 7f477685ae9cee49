//! Messages and conversations in SQLite. Every change is one immediate transaction.

mod history;
mod inbox;
mod pairing;
mod position;

use std::time::SystemTime;

use hob_db::{Database, DbResult, Migrations};

use super::message_list::SENT_TO;
use super::pairing::{ApprovedSender, NewPairing, PairingOutcome, PairingStore, PendingSender, SenderKey};
use super::position::PositionStore;
use super::{ChannelStore, Exchange, HistoryLine, MAX_RECENT, RecentLine, ThreadKey, UnsettledMessage};

/// The migrations of the tables of channels.
pub const MIGRATIONS: Migrations = Migrations {
    capability: "channels",
    steps: &[
        include_str!("../../../migrations/1_messages.sql"),
        include_str!("../../../migrations/2_pairing.sql"),
        include_str!("../../../migrations/3_position.sql"),
    ],
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
    fn take(&self, identity: Option<&str>, message: &str, now: SystemTime) -> DbResult<Option<i64>> {
        self.database.write(|transaction| inbox::take(transaction, identity, message, now))
    }

    fn settle(&self, id: i64) -> DbResult<bool> {
        self.database.write(|transaction| inbox::settle(transaction, id))
    }

    fn reopen(&self, id: i64, message: &str) -> DbResult<()> {
        self.database.write(|transaction| inbox::reopen(transaction, id, message))
    }

    fn unsettled(&self) -> DbResult<Vec<UnsettledMessage>> {
        self.database.read(inbox::unsettled)
    }

    fn history(&self, thread: ThreadKey<'_>, most: usize) -> DbResult<Vec<HistoryLine>> {
        self.database.read(|connection| history::last_lines(connection, thread, most))
    }

    fn remember(&self, thread: ThreadKey<'_>, exchange: Exchange<'_>, now: SystemTime) -> DbResult<()> {
        self.database.write(|transaction| history::add_exchange(transaction, thread, exchange, now))
    }

    fn note_sent(&self, thread: ThreadKey<'_>, content: &str, now: SystemTime) -> DbResult<()> {
        let conversation = format!("{SENT_TO}{}", thread.conversation);
        let thread = ThreadKey { conversation: &conversation, ..thread };
        self.database.write(|transaction| history::add_sent(transaction, thread, content, now))
    }

    fn recent(&self, most: usize) -> DbResult<Vec<RecentLine>> {
        let lines = self.database.read(|connection| history::recent(connection, most.min(MAX_RECENT)))?;
        Ok(lines.into_iter().map(RecentLine::shown).collect())
    }
}

impl PairingStore for SqliteChannelStore {
    fn is_approved(&self, sender: SenderKey<'_>) -> DbResult<bool> {
        self.database.read(|connection| pairing::is_approved(connection, sender))
    }

    fn begin_pairing(&self, pairing: NewPairing<'_>, now: SystemTime) -> DbResult<PairingOutcome> {
        self.database.write(|transaction| pairing::begin(transaction, pairing, now))
    }

    fn pending_senders(&self, now: SystemTime) -> DbResult<Vec<PendingSender>> {
        self.database.read(|connection| pairing::pending(connection, now))
    }

    fn approve_code(&self, code: &str, now: SystemTime) -> DbResult<Option<ApprovedSender>> {
        self.database.write(|transaction| pairing::approve_code(transaction, code, now))
    }

    fn approve_sender(&self, sender: SenderKey<'_>, name: &str, now: SystemTime) -> DbResult<()> {
        self.database.write(|transaction| pairing::approve(transaction, sender, name, now))
    }

    fn approved_senders(&self) -> DbResult<Vec<ApprovedSender>> {
        self.database.read(pairing::approved)
    }

    fn remove_sender(&self, sender: SenderKey<'_>) -> DbResult<bool> {
        self.database.write(|transaction| pairing::remove(transaction, sender))
    }
}

impl PositionStore for SqliteChannelStore {
    fn position(&self, channel: &str) -> DbResult<Option<String>> {
        self.database.read(|connection| position::position(connection, channel))
    }

    fn set_position(&self, channel: &str, position: &str) -> DbResult<()> {
        self.database.write(|transaction| position::set(transaction, channel, position))
    }
}

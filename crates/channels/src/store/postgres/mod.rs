//! Messages and conversations in PostgreSQL, and what the processes that share it have in common.

mod history;
mod inbox;
mod shared;

use std::time::SystemTime;

use hob_db::postgres::{PostgresDatabase, PostgresMigrations};
use hob_db::{ChangeWatch, DatabaseError, Durability};

use super::{
    ChannelStore, Exchange, HistoryLine, LeaseClaim, LeaseOutcome, NewRequest, RequestState,
    SharedChannelStore, TakenRequest, ThreadKey, UnsettledMessage,
};

/// The migrations of the tables of channels in PostgreSQL.
pub const POSTGRES_MIGRATIONS: PostgresMigrations = PostgresMigrations {
    capability: "channels",
    steps: &[include_str!("../../../migrations/postgres/1_messages.sql")],
    usable_from: 0,
};

#[derive(Clone)]
pub struct PostgresChannelStore {
    database: PostgresDatabase,
}

impl PostgresChannelStore {
    pub fn new(database: PostgresDatabase) -> Self {
        PostgresChannelStore { database }
    }
}

impl ChannelStore for PostgresChannelStore {
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
        self.database.read(|transaction| history::last_lines(transaction, thread, most))
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

impl SharedChannelStore for PostgresChannelStore {
    fn hold(&self, claim: &LeaseClaim<'_>) -> Result<LeaseOutcome, DatabaseError> {
        // A lease that a crash of the server shortens by a moment ends before its holder knows: holders stop well before the end.
        self.database.write_with(Durability::ProcessEnd, |transaction| shared::hold(transaction, claim))
    }

    fn release(&self, channel: &str, holder: &str) -> Result<(), DatabaseError> {
        self.database.write(|transaction| shared::release(transaction, channel, holder))
    }

    fn ask_holder(&self, channel: &str, request: NewRequest<'_>) -> Result<bool, DatabaseError> {
        self.database.write(|transaction| shared::ask_holder(transaction, channel, request))
    }

    fn request_state(&self, key: &str) -> Result<RequestState, DatabaseError> {
        self.database.write(|transaction| shared::request_state(transaction, key))
    }

    fn withdraw(&self, key: &str) -> Result<bool, DatabaseError> {
        self.database.write(|transaction| shared::withdraw(transaction, key))
    }

    fn take_requests(
        &self,
        channel: &str,
        holder: &str,
        most: usize,
    ) -> Result<Vec<TakenRequest>, DatabaseError> {
        self.database.write(|transaction| shared::take_requests(transaction, channel, holder, most))
    }

    fn answer(&self, id: i64, reply: &str) -> Result<(), DatabaseError> {
        self.database.write(|transaction| shared::answer(transaction, id, reply))
    }

    fn watch_requests(&self) -> Result<ChangeWatch, DatabaseError> {
        self.database.watch(shared::TOPIC)
    }
}

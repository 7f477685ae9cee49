//! Messages and conversations in PostgreSQL, and what the processes that share it have in common.

mod history;
mod inbox;
mod shared;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use hob_db::postgres::{PostgresDatabase, PostgresMigrations, TransactionEnd};
use hob_db::{ChangeWatch, DatabaseError, Durability};
use parking_lot::Mutex;

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
    /// Messages whose settlement failed, with the numbers of its transactions: if the connection broke during the commit, this process
    /// has settled the message, not another one.
    unconfirmed: Arc<Mutex<HashMap<i64, String>>>,
}

/// The most of them. Those of messages that were not tried again stay.
const MAX_UNCONFIRMED: usize = 1_000;

impl PostgresChannelStore {
    pub fn new(database: PostgresDatabase) -> Self {
        PostgresChannelStore { database, unconfirmed: Arc::default() }
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
        let earlier = self.unconfirmed.lock().remove(&id);
        let mut number = None;
        let settled = self.database.write(|transaction| {
            number = inbox::settle(transaction, id)?;
            match (&number, &earlier) {
                (None, Some(earlier)) => Ok(transaction.end_of(earlier)? == TransactionEnd::Committed),
                (number, _) => Ok(number.is_some()),
            }
        });
        if let (Err(_), Some(number)) = (&settled, number.or(earlier)) {
            let mut unconfirmed = self.unconfirmed.lock();
            if unconfirmed.len() >= MAX_UNCONFIRMED {
                unconfirmed.clear();
            }
            unconfirmed.insert(id, number);
        }
        settled
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

#[cfg(test)]
mod tests {
    use hob_testkit::PostgresServer;

    use super::*;

    #[test]
    fn a_message_that_was_settled_when_the_connection_broke_is_still_answered_by_this_process() {
        let created = PostgresServer::shared().create_database();
        let open = || {
            let options = created.url().parse().expect("a URL");
            PostgresChannelStore::new(PostgresDatabase::new(options, &[POSTGRES_MIGRATIONS]).expect("opened"))
        };
        let (store, other) = (open(), open());
        let id = store.take(Some("a"), "hello", SystemTime::UNIX_EPOCH).expect("written").expect("new");
        let mut number = None;
        let committed = store.database.write(|transaction| {
            number = inbox::settle(transaction, id)?;
            Ok(())
        });
        committed.expect("settled");
        // As if the answer to the commit had been lost.
        store.unconfirmed.lock().insert(id, number.expect("a number"));
        assert!(!other.settle(id).expect("asked"), "another process does not answer it");
        assert!(store.settle(id).expect("asked"));
        assert!(!store.settle(id).expect("asked"), "once");
    }
}

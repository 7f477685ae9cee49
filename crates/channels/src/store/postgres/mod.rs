//! Messages and conversations in PostgreSQL, and what the processes that share it have in common.

mod history;
mod inbox;
mod pairing;
mod position;
mod shared;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use hob_db::postgres::{PostgresDatabase, PostgresMigrations};
use hob_db::{ChangeWatch, DbResult, Durability};
use parking_lot::Mutex;

use super::message_list::SENT_TO;
use super::pairing::{ApprovedSender, NewPairing, PairingOutcome, PairingStore, PendingSender, SenderKey};
use super::position::PositionStore;
use super::{
    ChannelStore, Exchange, HistoryLine, LeaseClaim, LeaseOutcome, MAX_RECENT, NewRequest, RecentLine,
    RequestState, SharedChannelStore, TakenRequest, ThreadKey, UnsettledMessage,
};

/// The migrations of the tables of channels in PostgreSQL.
pub const POSTGRES_MIGRATIONS: PostgresMigrations = PostgresMigrations {
    capability: "channels",
    steps: &[
        include_str!("../../../migrations/postgres/1_messages.sql"),
        include_str!("../../../migrations/postgres/2_pairing.sql"),
        include_str!("../../../migrations/postgres/3_position.sql"),
    ],
    usable_from: 0,
};

#[derive(Clone)]
pub struct PostgresChannelStore {
    database: PostgresDatabase,
    /// Messages whose settlement failed, with the numbers of its transactions: if the connection broke during the commit, this process
    /// has settled the message, not another one.
    unconfirmed: Arc<Mutex<HashMap<i64, String>>>,
    /// The identities of messages that this process has, although the commit that saves them was not confirmed, by number.
    unconfirmed_takes: Arc<Mutex<HashMap<i64, String>>>,
}

/// The most of each. Those of messages that were not tried again stay.
const MAX_UNCONFIRMED: usize = 1_000;

fn keep_unconfirmed(unconfirmed: &Mutex<HashMap<i64, String>>, id: i64, text: String) {
    let mut unconfirmed = unconfirmed.lock();
    if unconfirmed.len() >= MAX_UNCONFIRMED {
        unconfirmed.clear();
    }
    unconfirmed.insert(id, text);
}

impl PostgresChannelStore {
    pub fn new(database: PostgresDatabase) -> Self {
        PostgresChannelStore { database, unconfirmed: Arc::default(), unconfirmed_takes: Arc::default() }
    }
}

impl ChannelStore for PostgresChannelStore {
    fn take(&self, identity: Option<&str>, message: &str, now: SystemTime) -> DbResult<Option<i64>> {
        // A message that its channel gives nothing to be known by gets an identity of its own, so that it is found if the commit is
        // not confirmed.
        let identity = identity.map_or_else(|| format!("hob-{:032x}", fastrand::u128(..)), str::to_owned);
        if self.unconfirmed_takes.lock().values().any(|known| *known == identity) {
            return Ok(None);
        }
        let mut number = None;
        let taken = self.database.write(|transaction| {
            number = inbox::take(transaction, &identity, message, now)?;
            Ok(number)
        });
        let (Err(_), Some(id)) = (&taken, number) else { return taken };
        // Often only the connection broke. Then a second look says whether the message was saved.
        let again =
            self.database.write(|transaction| inbox::take_again(transaction, id, &identity, message, now));
        if let Err(error) = &again {
            tracing::warn!(
                %error,
                "a message may not be saved, and may be lost if Hob stops before it is answered. 'hob \
                 doctor' checks the database"
            );
            keep_unconfirmed(&self.unconfirmed_takes, id, identity);
            return Ok(Some(id));
        }
        again
    }

    fn settle(&self, id: i64) -> DbResult<bool> {
        let earlier = self.unconfirmed.lock().remove(&id);
        let taken = self.unconfirmed_takes.lock().get(&id).cloned();
        let mut number = None;
        let settled = self.database.write(|transaction| {
            number = match &taken {
                Some(identity) => inbox::settle_unconfirmed(transaction, id, identity)?,
                None => inbox::settle(transaction, id)?,
            };
            match (&number, &earlier) {
                (None, Some(earlier)) => inbox::was_settled_by(transaction, id, earlier),
                (number, _) => Ok(number.is_some()),
            }
        });
        match (&settled, number.or(earlier)) {
            (Ok(_), _) => drop(self.unconfirmed_takes.lock().remove(&id)),
            (Err(_), Some(number)) => keep_unconfirmed(&self.unconfirmed, id, number),
            (Err(_), None) => {}
        }
        settled
    }

    fn reopen(&self, id: i64, message: &str) -> DbResult<()> {
        self.database.write(|transaction| inbox::reopen(transaction, id, message))
    }

    fn unsettled(&self) -> DbResult<Vec<UnsettledMessage>> {
        // Asked for when the queue of a channel is empty: messages that were saved are in the list, and the others come again.
        self.unconfirmed_takes.lock().clear();
        self.database.read(inbox::unsettled)
    }

    fn history(&self, thread: ThreadKey<'_>, most: usize) -> DbResult<Vec<HistoryLine>> {
        self.database.read(|transaction| history::last_lines(transaction, thread, most))
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
        let lines = self.database.read(|transaction| history::recent(transaction, most.min(MAX_RECENT)))?;
        Ok(lines.into_iter().map(RecentLine::shown).collect())
    }
}

impl PairingStore for PostgresChannelStore {
    fn is_approved(&self, sender: SenderKey<'_>) -> DbResult<bool> {
        self.database.read(|transaction| pairing::is_approved(transaction, sender))
    }

    fn begin_pairing(&self, pairing: NewPairing<'_>, now: SystemTime) -> DbResult<PairingOutcome> {
        self.database.write(|transaction| pairing::begin(transaction, pairing, now))
    }

    fn pending_senders(&self, now: SystemTime) -> DbResult<Vec<PendingSender>> {
        self.database.read(|transaction| pairing::pending(transaction, now))
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

impl PositionStore for PostgresChannelStore {
    fn position(&self, channel: &str) -> DbResult<Option<String>> {
        self.database.read(|transaction| position::position(transaction, channel))
    }

    fn set_position(&self, channel: &str, position: &str) -> DbResult<()> {
        self.database.write(|transaction| position::set(transaction, channel, position))
    }
}

impl SharedChannelStore for PostgresChannelStore {
    fn hold(&self, claim: &LeaseClaim<'_>) -> DbResult<LeaseOutcome> {
        // A lease that a crash of the server shortens by a moment ends before its holder knows: holders stop well before the end.
        self.database.write_with(Durability::ProcessEnd, |transaction| shared::hold(transaction, claim))
    }

    fn release(&self, channel: &str, holder: &str) -> DbResult<()> {
        self.database.write(|transaction| shared::release(transaction, channel, holder))
    }

    fn ask_holder(&self, channel: &str, request: NewRequest<'_>) -> DbResult<bool> {
        self.database.write(|transaction| shared::ask_holder(transaction, channel, request))
    }

    fn request_state(&self, key: &str) -> DbResult<RequestState> {
        self.database.write(|transaction| shared::request_state(transaction, key))
    }

    fn withdraw(&self, key: &str) -> DbResult<bool> {
        self.database.write(|transaction| shared::withdraw(transaction, key))
    }

    fn take_requests(&self, channel: &str, holder: &str, most: usize) -> DbResult<Vec<TakenRequest>> {
        self.database.write(|transaction| shared::take_requests(transaction, channel, holder, most))
    }

    fn answer(&self, id: i64, reply: &str) -> DbResult<()> {
        self.database.write(|transaction| shared::answer(transaction, id, reply))
    }

    fn watch_requests(&self) -> DbResult<ChangeWatch> {
        self.database.watch(shared::TOPIC)
    }
}

#[cfg(test)]
mod tests {
    use hob_testkit::{CommitLoss, CommitProxy, PostgresServer, TestDatabase};

    use super::*;

    /// A store whose commits can be lost, and another process.
    fn behind_a_proxy() -> (PostgresChannelStore, PostgresChannelStore, CommitProxy, TestDatabase) {
        let created = PostgresServer::shared().create_database();
        let proxy = CommitProxy::start(&created);
        let open = |url: String| {
            let options = url.parse().expect("a URL");
            PostgresChannelStore::new(PostgresDatabase::new(options, &[POSTGRES_MIGRATIONS]).expect("opened"))
        };
        let (store, other) = (open(proxy.url()), open(created.url()));
        store.unsettled().expect("migrated");
        (store, other, proxy, created)
    }

    fn take(store: &PostgresChannelStore, identity: Option<&str>) -> Option<i64> {
        store.take(identity, "hello", SystemTime::UNIX_EPOCH).expect("taken")
    }

    #[test]
    fn a_message_is_taken_once_although_the_connection_breaks_during_the_commit() {
        for loss in [CommitLoss::Unconfirmed, CommitLoss::Unsent] {
            for identity in [Some("a"), None] {
                let (store, other, proxy, _created) = behind_a_proxy();
                proxy.lose_next(loss);
                let id = take(&store, identity).expect("new");
                let unsettled = other.unsettled().expect("read");
                assert_eq!(unsettled, [UnsettledMessage { id, message: "hello".to_owned() }], "{loss:?}");
                if identity.is_some() {
                    assert_eq!((take(&other, identity), take(&store, identity)), (None, None));
                }
                assert!(store.settle(id).expect("settled"));
                assert_eq!(other.unsettled().expect("read"), []);
            }
        }
    }

    #[test]
    fn a_message_that_was_taken_when_the_server_went_away_is_answered_once() {
        for loss in [CommitLoss::Unconfirmed, CommitLoss::Unsent] {
            for identity in [Some("a"), None] {
                let (store, other, proxy, _created) = behind_a_proxy();
                proxy.lose_next_and_go_away(loss);
                let id = take(&store, identity).expect("new");
                if identity.is_some() {
                    assert_eq!(take(&store, identity), None, "it comes again");
                }
                assert!(store.settle(id).expect_err("it is away").is_temporary());
                proxy.come_back();
                assert!(store.settle(id).expect("settled"), "{loss:?} {identity:?}");
                assert!(!store.settle(id).expect("asked"), "once");
                // Its reply could not be sent, and is tried again.
                store.reopen(id, "hello").expect("open again");
                assert!(store.settle(id).expect("settled"));
                assert_eq!(other.unsettled().expect("read"), []);
                if identity.is_some() {
                    assert_eq!(take(&other, identity), None, "it stays known");
                }
            }
        }
    }

    #[test]
    fn a_message_that_was_not_saved_and_that_another_process_took_is_left_to_that_process() {
        let (store, other, proxy, _created) = behind_a_proxy();
        proxy.lose_next_and_go_away(CommitLoss::Unsent);
        let id = take(&store, Some("a")).expect("new");
        let others = take(&other, Some("a")).expect("new");
        proxy.come_back();
        assert!(!store.settle(id).expect("asked"));
        assert!(other.settle(others).expect("settled"));
    }

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

    #[test]
    fn a_message_that_another_process_settled_is_not_answered_again_although_its_number_is_in_use() {
        let created = PostgresServer::shared().create_database();
        let open = || {
            let options = created.url().parse().expect("a URL");
            PostgresChannelStore::new(PostgresDatabase::new(options, &[POSTGRES_MIGRATIONS]).expect("opened"))
        };
        let (store, other) = (open(), open());
        let id = take(&store, Some("a")).expect("new");
        assert!(other.settle(id).expect("settled"));
        let mut of_another = String::new();
        let committed = other.database.write(|transaction| {
            of_another = transaction.query_one("SELECT pg_current_xact_id()::text", &[])?.try_get(0)?;
            Ok(())
        });
        committed.expect("committed");
        // After a crash, the server may give the number of the lost settlement to another transaction.
        store.unconfirmed.lock().insert(id, of_another);
        assert!(!store.settle(id).expect("asked"));
    }
}

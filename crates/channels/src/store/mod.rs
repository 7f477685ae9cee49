//! Stores the received messages until they are answered, the history of each conversation, and the approved senders. Everything has
//! a limit, because anyone can write.
//!
//! Every call blocks. A message is a text with an identity: a store knows nothing of channels.
//!
//! A database that several processes share has more: which of them is connected to a channel, and the requests of the others to it.

mod copy;
mod message_list;
mod pairing;
mod position;
mod postgres;
mod sqlite;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hob_db::{ChangeWatch, DbResult, Storage};

pub use copy::COPY_TABLES;
pub use message_list::{MAX_RECENT, RecentLine};
pub use pairing::{ApprovedSender, NewPairing, PairingOutcome, PairingStore, PendingSender, SenderKey};
pub use position::PositionStore;
pub use postgres::{POSTGRES_MIGRATIONS, PostgresChannelStore};
pub use sqlite::{MIGRATIONS, SqliteChannelStore};

/// The store of a database, and what the processes that share the database have in common.
#[derive(Clone)]
pub struct OpenedChannelStore {
    pub store: Arc<dyn ChannelStore>,
    /// `None` if only one process uses the database at a time.
    pub shared: Option<Arc<dyn SharedChannelStore>>,
}

/// Opens a file, and asks no server.
pub fn open_channel_store(storage: &Storage) -> DbResult<OpenedChannelStore> {
    Ok(match storage {
        Storage::Sqlite(database) => {
            OpenedChannelStore { store: Arc::new(SqliteChannelStore::new(database.open()?)), shared: None }
        }
        Storage::Postgres(database) => {
            let store = Arc::new(PostgresChannelStore::new(database.clone()));
            OpenedChannelStore { store: Arc::clone(&store) as Arc<dyn ChannelStore>, shared: Some(store) }
        }
    })
}

/// The number of remembered messages. A message that is repeated after more others counts as new.
pub(crate) const MAX_REMEMBERED: i64 = 20_000;

/// Lines of one conversation that are saved.
pub(crate) const MAX_THREAD_LINES: i64 = 200;

/// Lines of all conversations that are saved.
pub(crate) const MAX_LINES: i64 = 100_000;

pub trait ChannelStore: PairingStore + PositionStore {
    /// Adds a message and returns its number; `None` if a message with that identity was added before. Safe for concurrent
    /// processes.
    fn take(&self, identity: Option<&str>, message: &str, now: SystemTime) -> DbResult<Option<i64>>;

    /// Marks a message as answered. Its text is deleted, its identity stays. Returns whether it was not answered before: of several
    /// processes, one gets `true`.
    fn settle(&self, id: i64) -> DbResult<bool>;

    /// Marks a message as not answered.
    fn reopen(&self, id: i64, message: &str) -> DbResult<()>;

    /// The messages that are not answered, oldest first.
    fn unsettled(&self) -> DbResult<Vec<UnsettledMessage>>;

    /// The last lines of a conversation, oldest first.
    fn history(&self, thread: ThreadKey<'_>, most: usize) -> DbResult<Vec<HistoryLine>>;

    /// Adds a question and its answer, and deletes lines beyond the limits.
    fn remember(&self, thread: ThreadKey<'_>, exchange: Exchange<'_>, now: SystemTime) -> DbResult<()>;

    /// Adds a message that Hob sent of its own accord. It is not in the history of the conversation, and has the same limits.
    fn note_sent(&self, thread: ThreadKey<'_>, content: &str, now: SystemTime) -> DbResult<()>;

    /// The last lines of all conversations, and of what Hob sent, newest first.
    fn recent(&self, most: usize) -> DbResult<Vec<RecentLine>>;
}

/// The requests that wait for the process that is connected to one channel.
pub(crate) const MAX_WAITING_REQUESTS: i64 = 1_000;

/// What processes that share a database have in common. Times are those of the server, so clocks that differ do no harm.
pub trait SharedChannelStore: Send + Sync {
    /// Takes or renews the lease of a channel, unless another process has it.
    fn hold(&self, claim: &LeaseClaim<'_>) -> DbResult<LeaseOutcome>;

    /// Gives the lease back, if `holder` has it.
    fn release(&self, channel: &str, holder: &str) -> DbResult<()>;

    /// Puts down a request to the process that is connected to a channel; `false` if too many wait. A request whose key is there
    /// already is not put down again.
    fn ask_holder(&self, channel: &str, request: NewRequest<'_>) -> DbResult<bool>;

    /// What became of a request. One that is answered is deleted with that.
    fn request_state(&self, key: &str) -> DbResult<RequestState>;

    /// Deletes a request that was not taken; `false` if it was taken.
    fn withdraw(&self, key: &str) -> DbResult<bool>;

    /// Takes requests for `holder`, oldest first: new ones, and those of a holder before it that did not answer them. Deletes those
    /// that nothing waits for any more.
    fn take_requests(&self, channel: &str, holder: &str, most: usize) -> DbResult<Vec<TakenRequest>>;

    /// Answers a request.
    fn answer(&self, id: i64, reply: &str) -> DbResult<()>;

    /// Reports new requests and answers.
    fn watch_requests(&self) -> DbResult<ChangeWatch>;
}

/// Asks for the lease of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseClaim<'a> {
    pub channel: &'a str,
    /// The process.
    pub holder: &'a str,
    pub lease: Duration,
    /// The state of the connection, for the other processes.
    pub status: &'a str,
    pub problem: Option<&'a str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseOutcome {
    Held,
    /// Another process has it, and says this of its connection.
    HeldByOther {
        status: String,
        problem: Option<String>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewRequest<'a> {
    /// The same for every attempt.
    pub key: &'a str,
    pub request: &'a str,
    /// How long the asking process waits for the answer.
    pub wait: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestState {
    Waiting,
    Taken,
    Answered(String),
    Gone,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenRequest {
    pub id: i64,
    pub request: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsettledMessage {
    pub id: i64,
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadKey<'a> {
    pub channel: &'a str,
    pub conversation: &'a str,
}

/// The author of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    Person,
    Hob,
}

hob_core::named_variants! {
    Speaker {
        Person => "person",
        Hob => "hob",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryLine {
    pub speaker: Speaker,
    /// The sender of the question, also for an answer.
    pub sender: String,
    pub content: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange<'a> {
    pub sender: &'a str,
    pub question: &'a str,
    pub answer: &'a str,
}

#[cfg(test)]
mod tests;

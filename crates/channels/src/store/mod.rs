//! Stores the received messages until they are answered, and the history of each conversation. Everything has a limit, because
//! anyone can write.
//!
//! Every call blocks. A message is a text with an identity: a store knows nothing of channels.

mod sqlite;

use std::time::SystemTime;

use hob_db::DatabaseError;

pub use sqlite::{MIGRATIONS, SqliteChannelStore};

/// The number of remembered messages. A message that is repeated after more others counts as new.
pub(crate) const MAX_REMEMBERED: i64 = 20_000;

/// Lines of one conversation that are saved.
pub(crate) const MAX_THREAD_LINES: i64 = 200;

/// Lines of all conversations that are saved.
pub(crate) const MAX_LINES: i64 = 100_000;

pub trait ChannelStore: Send + Sync {
    /// Adds a message and returns its number; `None` if a message with that identity was added before. Safe for concurrent
    /// processes.
    fn take(
        &self,
        identity: Option<&str>,
        message: &str,
        now: SystemTime,
    ) -> Result<Option<i64>, DatabaseError>;

    /// Marks a message as answered. Its text is deleted, its identity stays.
    fn settle(&self, id: i64) -> Result<(), DatabaseError>;

    /// Marks a message as not answered.
    fn reopen(&self, id: i64, message: &str) -> Result<(), DatabaseError>;

    /// The messages that are not answered, oldest first.
    fn unsettled(&self) -> Result<Vec<UnsettledMessage>, DatabaseError>;

    /// The last lines of a conversation, oldest first.
    fn history(&self, thread: ThreadKey<'_>, most: usize) -> Result<Vec<HistoryLine>, DatabaseError>;

    /// Adds a question and its answer, and deletes lines beyond the limits.
    fn remember(
        &self,
        thread: ThreadKey<'_>,
        exchange: Exchange<'_>,
        now: SystemTime,
    ) -> Result<(), DatabaseError>;
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

impl Speaker {
    fn as_str(self) -> &'static str {
        match self {
            Speaker::Person => "person",
            Speaker::Hob => "hob",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        match text {
            "person" => Some(Speaker::Person),
            "hob" => Some(Speaker::Hob),
            _ => None,
        }
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

//! The messages that came in, until they are answered, and the history of each conversation. Everything has a limit, because anyone
//! can write.
//!
//! Every call blocks. A message is a text with an identity here: a store knows nothing of channels.

mod sqlite;

use std::time::SystemTime;

use hob_db::DatabaseError;

pub use sqlite::{MIGRATIONS, SqliteChannelStore};

/// The number of messages that are remembered. One that comes again after so many others counts as new.
pub(crate) const MAX_REMEMBERED: i64 = 20_000;

/// Lines of one conversation that are saved.
pub(crate) const MAX_THREAD_LINES: i64 = 200;

/// Lines of all conversations that are saved.
pub(crate) const MAX_LINES: i64 = 100_000;

/// Saves messages and conversations.
pub trait ChannelStore: Send + Sync {
    /// Takes a message in and returns its number; `None` when one of that identity was taken in before. Safe when several
    /// processes do it at once.
    fn take(
        &self,
        identity: Option<&str>,
        message: &str,
        now: SystemTime,
    ) -> Result<Option<i64>, DatabaseError>;

    /// The message is dealt with. Its text is deleted, its identity stays.
    fn settle(&self, id: i64) -> Result<(), DatabaseError>;

    /// The message is not dealt with after all.
    fn reopen(&self, id: i64, message: &str) -> Result<(), DatabaseError>;

    /// The messages that were taken in and not dealt with, in the order in which they came.
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

/// A message that was taken in and not dealt with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsettledMessage {
    pub id: i64,
    pub message: String,
}

/// Which conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadKey<'a> {
    pub channel: &'a str,
    pub conversation: &'a str,
}

/// Who said a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// A person on the channel.
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

/// One line of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryLine {
    pub speaker: Speaker,
    /// Who asked. An answer has the sender of its question.
    pub sender: String,
    pub content: String,
}

/// A question and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange<'a> {
    pub sender: &'a str,
    pub question: &'a str,
    pub answer: &'a str,
}

#[cfg(test)]
mod tests;

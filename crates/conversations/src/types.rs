//! A conversation, its turns, and the numbers that they have.

use std::fmt;

use hob_core::Moment;

/// The number of a conversation, as people type it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChatId(i64);

impl ChatId {
    /// The number in a text; `None` when it cannot be one.
    pub fn parse(text: &str) -> Option<Self> {
        text.trim().parse().ok().filter(|id| *id > 0).map(ChatId)
    }

    pub(crate) fn new(id: i64) -> Self {
        ChatId(id)
    }

    pub(crate) fn get(self) -> i64 {
        self.0
    }
}

impl fmt::Display for ChatId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// The number of a turn in its conversation. It never changes; a later turn has a higher one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TurnNumber(i64);

impl TurnNumber {
    pub fn new(number: i64) -> Self {
        TurnNumber(number)
    }

    pub(crate) fn get(self) -> i64 {
        self.0
    }
}

/// Where a turn is saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SavedTurn {
    pub chat: ChatId,
    pub number: TurnNumber,
}

/// Whether an answer is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnEnding {
    Complete,
    /// The person who asked stopped it.
    Stopped,
}

impl TurnEnding {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            TurnEnding::Complete => "complete",
            TurnEnding::Stopped => "stopped",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "complete" => Some(TurnEnding::Complete),
            "stopped" => Some(TurnEnding::Stopped),
            _ => None,
        }
    }
}

/// A question and its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatTurn {
    pub question: String,
    pub answer: String,
    pub ending: TurnEnding,
    /// The model that answered.
    pub model: String,
}

/// A conversation in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatSummary {
    pub id: ChatId,
    /// The beginning of its first question, on one line.
    pub title: String,
    pub turns: u64,
    pub last_used: Moment,
}

/// The turns of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversation {
    /// Oldest first; there is at least one.
    pub turns: Vec<ChatTurn>,
    /// Where the last of them is saved.
    pub last: SavedTurn,
}

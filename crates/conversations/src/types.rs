//! The numbers of chats and turns, and how an answer ends.

use std::fmt;

use serde::{Deserialize, Serialize};

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

    /// The number in a text; `None` when it cannot be one.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok().filter(|number| *number > 0).map(TurnNumber)
    }

    pub(crate) fn get(self) -> i64 {
        self.0
    }
}

impl fmt::Display for TurnNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Where a turn is saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SavedTurn {
    pub chat: ChatId,
    pub number: TurnNumber,
}

/// Whether an answer is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TurnEnding {
    Complete,
    /// The person who asked stopped it.
    Stopped,
    /// The stream broke, or the model reached its limit of tokens.
    Cut,
    /// There is no answer, or only the beginning of one, because of an error.
    Failed,
}

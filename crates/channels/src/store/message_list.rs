//! The list of messages: the last lines of all conversations, and what Hob sent of its own accord, which is in no history.

use hob_core::Moment;

use super::Speaker;

/// The most lines that `recent` returns.
pub const MAX_RECENT: usize = 200;

/// Begins the name of a conversation with what Hob sent to it of its own accord. No channel names a conversation so.
pub(super) const SENT_TO: &str = "\u{1e}sent\u{1e}";

/// A line of any conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecentLine {
    pub channel: String,
    /// As the channel names it; the sender's id where the channel has no conversations.
    pub conversation: String,
    pub speaker: Speaker,
    /// The sender of the question, also for an answer; empty for what Hob sent of its own accord.
    pub sender: String,
    pub content: String,
    pub said: Moment,
}

impl RecentLine {
    /// The line without the marks of the table.
    pub(super) fn shown(self) -> Self {
        let name = self.conversation.strip_prefix(SENT_TO).unwrap_or(&self.conversation);
        let conversation = name.strip_prefix('\u{1f}').unwrap_or(name).to_owned();
        RecentLine { conversation, ..self }
    }
}

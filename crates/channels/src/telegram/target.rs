//! Where a message goes: a chat, and a topic in it.

use serde_json::{Value, json};

/// The name of the channel.
pub const CHANNEL: &str = "telegram";

/// A chat, and a topic in it if it has topics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TelegramChat {
    pub chat: i64,
    pub topic: Option<i64>,
}

impl TelegramChat {
    /// `CHAT` or `CHAT:TOPIC`.
    pub fn parse(text: &str) -> Option<Self> {
        let (chat, topic) = match text.split_once(':') {
            Some((chat, topic)) => (chat, Some(topic.parse().ok()?)),
            None => (text, None),
        };
        Some(TelegramChat { chat: chat.parse().ok()?, topic })
    }

    pub fn id(self) -> String {
        match self.topic {
            Some(topic) => format!("{}:{topic}", self.chat),
            None => self.chat.to_string(),
        }
    }

    /// Groups have negative numbers.
    pub fn is_group(self) -> bool {
        self.chat < 0
    }

    /// The fields of a request that name it.
    pub fn fields(self) -> Value {
        match self.topic {
            Some(topic) => json!({ "chat_id": self.chat, "message_thread_id": topic }),
            None => json!({ "chat_id": self.chat }),
        }
    }
}

/// Whether a name of `send` is an address on Telegram: `telegram`, or `telegram:CHAT`.
pub fn is_ours(channel: &str) -> bool {
    channel == CHANNEL || channel.strip_prefix(CHANNEL).is_some_and(|rest| rest.starts_with(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chat_is_a_number_with_or_without_a_topic() {
        for (text, chat, topic) in [("42", 42, None), ("-100123", -100_123, None), ("-5:7", -5, Some(7))] {
            let target = TelegramChat { chat, topic };
            assert_eq!(TelegramChat::parse(text), Some(target));
            assert_eq!(target.id(), text);
        }
        for wrong in ["", "ann", "1:", "1:x", "1:2:3", "99999999999999999999"] {
            assert_eq!(TelegramChat::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn only_addresses_of_telegram_are_ours() {
        assert!(is_ours("telegram") && is_ours("telegram:12345"));
        assert!(!is_ours("telegrams") && !is_ours("slack") && !is_ours(""));
    }
}

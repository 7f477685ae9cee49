//! Sends messages to Telegram: in pieces if they are long, and in the place of the preview if there is one.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::sleep;

use super::api::{TelegramApi, TelegramError};
use super::live::{LiveMessage, TelegramLive};
use super::outgoing_body::{edit_body, message_body};
use super::split::{MAX_UNITS, split};
use super::target::{CHANNEL, TelegramChat};
use crate::live_reply::{LiveReply, NoLiveReply};
use crate::outgoing::{MessageSender, Outgoing, SendFailure};
use crate::types::ChannelMessage;

/// A longer wait that Telegram asks for is a failure.
const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// How often a piece is sent if Telegram asks to wait.
const ATTEMPTS: usize = 4;

/// Previews that are remembered, and for how long: a little longer than an answer may take.
const MAX_LIVE: usize = 1_000;
const LIVE_FOR: Duration = Duration::from_secs(900);

pub(super) struct TelegramSender {
    api: Arc<TelegramApi>,
    /// Previews by the key of the complete reply.
    live: Mutex<HashMap<String, LiveMessage>>,
}

impl TelegramSender {
    pub fn new(api: Arc<TelegramApi>) -> Self {
        TelegramSender { api, live: Mutex::default() }
    }

    fn remember(&self, key: &str, message: LiveMessage) {
        let mut live = self.live.lock();
        live.retain(|_, message| message.since.elapsed() < LIVE_FOR);
        if live.len() < MAX_LIVE {
            live.insert(key.to_owned(), message);
        }
    }

    /// Sends the first piece: in the place of the preview, else as a new message.
    async fn send_first(
        &self,
        to: TelegramChat,
        text: &str,
        message: &Outgoing,
    ) -> Result<(), TelegramError> {
        let live = self.live.lock().remove(&message.key);
        let shown = match live {
            Some(live) => live.ended().await,
            None => None,
        };
        if let Some(shown) = shown {
            let body = edit_body(to, shown, text);
            match patiently(|| self.api.edit_message(&body)).await {
                // It was deleted, or is too old to be edited.
                Err(TelegramError::Refused { .. }) => {}
                outcome => return outcome,
            }
        }
        self.send_piece(&message_body(to, text, reply_to(to, message.reply_to.as_deref()))).await
    }

    async fn send_piece(&self, body: &Value) -> Result<(), TelegramError> {
        patiently(|| self.api.send_message(body)).await.map(drop)
    }
}

/// Tries again after the wait that Telegram asks for.
async fn patiently<T, F>(attempt: impl Fn() -> F) -> Result<T, TelegramError>
where
    F: Future<Output = Result<T, TelegramError>>,
{
    let mut attempts = 1;
    loop {
        match attempt().await {
            Err(TelegramError::TooManyRequests { wait }) if wait <= LONGEST_WAIT && attempts < ATTEMPTS => {
                attempts += 1;
                sleep(wait).await;
            }
            outcome => return outcome,
        }
    }
}

#[async_trait]
impl MessageSender for TelegramSender {
    async fn deliver(&self, message: &Outgoing) -> Result<(), SendFailure> {
        let to = target(message)?;
        let mut pieces = split(&message.content, MAX_UNITS).into_iter();
        let Some(first) = pieces.next() else {
            return Err(SendFailure::Invalid("the text is empty".to_owned()));
        };
        self.send_first(to, first, message).await.map_err(|error| failure(&error))?;
        for piece in pieces {
            // The first piece has arrived, so none of them may be sent again.
            let sent = self.send_piece(&message_body(to, piece, None)).await;
            sent.map_err(|error| SendFailure::Unknown(format!("only the beginning was sent: {error}")))?;
        }
        Ok(())
    }

    async fn channels(&self) -> Result<Vec<String>, String> {
        Ok(vec![CHANNEL.to_owned()])
    }

    fn live(&self, message: &ChannelMessage, key: &str) -> Arc<dyn LiveReply> {
        let Some(to) = TelegramChat::parse(&message.conversation_id) else { return Arc::new(NoLiveReply) };
        let reply = TelegramLive::new(Arc::clone(&self.api), to, reply_to(to, Some(&message.message_id)));
        if !key.is_empty() {
            self.remember(key, reply.message());
        }
        Arc::new(reply)
    }
}

/// The chat of a message: after the name of the channel, else its conversation.
fn target(message: &Outgoing) -> Result<TelegramChat, SendFailure> {
    let named = message.channel.strip_prefix(CHANNEL).and_then(|rest| rest.strip_prefix(':'));
    let id = named.or(message.conversation_id.as_deref()).unwrap_or_default();
    TelegramChat::parse(id).ok_or_else(|| {
        SendFailure::Invalid(format!(
            "'{id}' is not a chat of Telegram. Write telegram:NUMBER; 'hob channel senders' shows the numbers of people"
        ))
    })
}

/// In a group, a reply shows which message it answers.
fn reply_to(to: TelegramChat, message: Option<&str>) -> Option<i64> {
    message.filter(|_| to.is_group()).and_then(|id| id.parse().ok())
}

fn failure(error: &TelegramError) -> SendFailure {
    let reason = error.to_string();
    match error {
        TelegramError::TooManyRequests { .. } | TelegramError::Unreachable { is_unsent: true, .. } => {
            SendFailure::NotSent(reason)
        }
        TelegramError::Unreachable { is_unsent: false, .. } | TelegramError::BadAnswer { .. } => {
            SendFailure::Unknown(reason)
        }
        TelegramError::Token | TelegramError::Conflict { .. } | TelegramError::Refused { .. } => {
            SendFailure::Refused(reason)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(channel: &str, conversation: Option<&str>) -> Option<String> {
        let message = Outgoing::new(channel, "x", conversation).unwrap();
        target(&message).ok().map(TelegramChat::id)
    }

    #[test]
    fn the_chat_is_in_the_name_or_in_the_conversation() {
        assert_eq!(to("telegram:12", None).as_deref(), Some("12"));
        assert_eq!(to("telegram:-100:7", Some("1")).as_deref(), Some("-100:7"));
        assert_eq!(to("telegram", Some("-100:7")).as_deref(), Some("-100:7"));
        assert_eq!(to("telegram", None), None);
        assert_eq!(to("telegram:ann", None), None);
    }

    #[test]
    fn only_a_request_that_certainly_did_not_arrive_is_sent_again() {
        let unreachable = |is_unsent| TelegramError::Unreachable { reason: "x".into(), is_unsent };
        assert!(matches!(failure(&unreachable(true)), SendFailure::NotSent(_)));
        assert!(matches!(failure(&unreachable(false)), SendFailure::Unknown(_)));
        assert!(matches!(failure(&TelegramError::Token), SendFailure::Refused(_)));
    }

    #[test]
    fn a_reply_names_its_question_in_groups_only() {
        let chat = |chat| TelegramChat { chat, topic: None };
        assert_eq!(reply_to(chat(-1), Some("5")), Some(5));
        assert_eq!(reply_to(chat(1), Some("5")), None);
        assert_eq!(reply_to(chat(-1), Some("x")), None);
    }
}

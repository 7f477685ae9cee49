//! Sends messages to Telegram: in pieces if they are long, and in the place of the preview if there is one.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::api::{TelegramApi, TelegramError};
use super::live_reply::{LivePlace, Previews, REMEMBERED_FOR, TelegramLive};
use super::outgoing_body::{edit_body, message_body};
use super::split::{MAX_UNITS, split};
use super::target::{CHANNEL, TelegramChat};
use crate::live_reply::{LiveReply, NoLiveReply};
use crate::outgoing::{MessageSender, NO_RECIPIENT, Outgoing, SendFailure};
use crate::types::ChannelMessage;

/// A longer wait that Telegram asks for is a failure.
const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// How often a piece is sent if Telegram asks to wait.
const ATTEMPTS: usize = 4;

/// Messages whose first pieces are remembered.
const MAX_BEGUN: usize = 1_000;

pub(super) struct TelegramSender {
    api: Arc<TelegramApi>,
    previews: Arc<Previews>,
    /// How many pieces of a message were sent before one was not, by its key. The next attempt continues there.
    begun: Mutex<HashMap<String, Begun>>,
}

/// The pieces of a message that were sent, and when the next one was not.
struct Begun {
    pieces: usize,
    since: Instant,
}

impl TelegramSender {
    pub fn new(api: Arc<TelegramApi>) -> Self {
        TelegramSender { api, previews: Arc::default(), begun: Mutex::default() }
    }

    /// Sends the first piece: in the place of the preview, else as a new message.
    async fn send_first(
        &self,
        to: TelegramChat,
        text: &str,
        message: &Outgoing,
    ) -> Result<(), TelegramError> {
        let shown = match self.previews.take(&message.key) {
            Some(live) => live.ended().await,
            None => None,
        };
        if let Some(shown) = shown {
            let body = edit_body(to, shown, text);
            match patiently(|| self.api.edit_message(&body)).await {
                // It was deleted, or is too old to be edited.
                Err(TelegramError::Refused { .. }) => {}
                Ok(()) => return Ok(()),
                Err(error) => {
                    self.previews.keep(&message.key, shown);
                    return Err(repeatable(error));
                }
            }
        }
        self.send_piece(&message_body(to, text, reply_to(to, message.reply_to.as_deref()))).await
    }

    async fn send_piece(&self, body: &Value) -> Result<(), TelegramError> {
        patiently(|| self.api.send_message(body)).await.map(drop)
    }

    /// Why a message was not sent, of which so many pieces have arrived.
    fn failed_after(&self, sent: usize, message: &Outgoing, error: &TelegramError) -> SendFailure {
        match failure(error) {
            failed if sent == 0 => failed,
            SendFailure::NotSent(reason) if self.remember_begun(&message.key, sent) => {
                SendFailure::NotSent(reason)
            }
            // Another attempt would send the first pieces again.
            _ => SendFailure::Unknown(format!("only the beginning was sent: {error}")),
        }
    }

    /// Returns whether there is room for it.
    fn remember_begun(&self, key: &str, pieces: usize) -> bool {
        let mut begun = self.begun.lock();
        begun.retain(|_, begun| begun.since.elapsed() < REMEMBERED_FOR);
        let has_room = begun.len() < MAX_BEGUN;
        if has_room {
            begun.insert(key.to_owned(), Begun { pieces, since: Instant::now() });
        }
        has_room
    }
}

/// The failure of an edit, which may be repeated even if it has arrived: otherwise the preview would stay without its end.
fn repeatable(error: TelegramError) -> TelegramError {
    match error {
        TelegramError::Unreachable { reason, .. } | TelegramError::BadAnswer { reason } => {
            TelegramError::Unreachable { reason, is_unsent: true }
        }
        other => other,
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
        let to = target(&message.channel, message.conversation_id.as_deref())?;
        let pieces = split(&message.content, MAX_UNITS);
        if pieces.is_empty() {
            return Err(SendFailure::Invalid("the text is empty".to_owned()));
        }
        let begun = self.begun.lock().remove(&message.key).map_or(0, |begun| begun.pieces);
        for (number, piece) in pieces.into_iter().enumerate().skip(begun) {
            let sent = match number {
                0 => self.send_first(to, piece, message).await,
                _ => self.send_piece(&message_body(to, piece, None)).await,
            };
            sent.map_err(|error| self.failed_after(number, message, &error))?;
        }
        Ok(())
    }

    async fn channels(&self) -> Result<Vec<String>, String> {
        Ok(vec![CHANNEL.to_owned()])
    }

    fn check_recipient(&self, channel: &str, conversation_id: Option<&str>) -> Result<(), SendFailure> {
        target(channel, conversation_id).map(drop)
    }

    fn live(&self, message: &ChannelMessage, key: &str) -> Arc<dyn LiveReply> {
        let Some(to) = TelegramChat::parse(&message.conversation_id) else { return Arc::new(NoLiveReply) };
        let place =
            LivePlace { target: to, reply_to: reply_to(to, Some(&message.message_id)), key: key.to_owned() };
        Arc::new(TelegramLive::new(Arc::clone(&self.api), Arc::clone(&self.previews), place))
    }
}

/// The chat of a message: after the name of the channel, else its conversation.
fn target(channel: &str, conversation_id: Option<&str>) -> Result<TelegramChat, SendFailure> {
    let named = channel.strip_prefix(CHANNEL).and_then(|rest| rest.strip_prefix(':'));
    let id = named.or(conversation_id).unwrap_or_default();
    TelegramChat::parse(id).ok_or_else(|| {
        let problem = match id {
            "" => NO_RECIPIENT.to_owned(),
            id => format!("'{id}' is not a chat of Telegram"),
        };
        SendFailure::Invalid(format!(
            "{problem}. Write telegram:NUMBER; 'hob channel senders' shows the numbers of people"
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
    use hob_testkit::{TELEGRAM_TOKEN, TelegramServer};
    use serde_json::json;

    use super::*;

    fn to(channel: &str, conversation: Option<&str>) -> Option<String> {
        let message = Outgoing::new(channel, "x", conversation).unwrap();
        target(&message.channel, message.conversation_id.as_deref()).ok().map(TelegramChat::id)
    }

    #[test]
    fn the_chat_is_in_the_name_or_in_the_conversation() {
        assert_eq!(to("telegram:12", None).as_deref(), Some("12"));
        assert_eq!(to("telegram:-100:7", Some("1")).as_deref(), Some("-100:7"));
        assert_eq!(to("telegram", Some("-100:7")).as_deref(), Some("-100:7"));
        assert_eq!(to("telegram", None), None);
        assert_eq!(to("telegram:ann", None), None);
        assert_eq!(to("telegram:ann", Some("1")), None);
    }

    #[test]
    fn only_a_request_that_certainly_did_not_arrive_is_sent_again() {
        let unreachable = |is_unsent| TelegramError::Unreachable { reason: "x".into(), is_unsent };
        assert!(matches!(failure(&unreachable(true)), SendFailure::NotSent(_)));
        assert!(matches!(failure(&unreachable(false)), SendFailure::Unknown(_)));
        assert!(matches!(failure(&TelegramError::Token), SendFailure::Refused(_)));
    }

    /// A sender, and a message of which a preview is shown.
    async fn with_preview(telegram: &TelegramServer, text: &str) -> (TelegramSender, Outgoing) {
        let api = TelegramApi::new(&telegram.url(), TELEGRAM_TOKEN.to_owned().into()).unwrap();
        let sender = TelegramSender::new(Arc::new(api));
        let message = Outgoing::new("telegram:7", text, None).unwrap();
        let chat = target(&message.channel, None).unwrap();
        let shown = sender.api.send_message(&message_body(chat, "The …", None)).await;
        sender.previews.keep(&message.key, shown.unwrap().message_id);
        (sender, message)
    }

    #[tokio::test]
    async fn a_preview_becomes_the_answer_although_an_edit_fails() {
        let telegram = TelegramServer::start().await;
        let (sender, message) = with_preview(&telegram, "The answer.").await;
        let wait = json!({ "parameters": { "retry_after": 3_600 } });
        for (status, more) in [(502, Value::Null), (500, Value::Null), (429, wait)] {
            telegram.fail_next("editMessageText", status, more);
            let failed = sender.deliver(&message).await;
            assert!(matches!(failed, Err(SendFailure::NotSent(_))), "{status}: {failed:?}");
        }
        assert_eq!(sender.deliver(&message).await, Ok(()));
        assert_eq!(telegram.shown(7), ["The answer."]);
    }

    #[tokio::test]
    async fn a_long_answer_continues_after_the_piece_that_was_not_sent() {
        let telegram = TelegramServer::start().await;
        let (first, second) = ("a".repeat(MAX_UNITS), "b".repeat(10));
        let (sender, message) = with_preview(&telegram, &format!("{first}\n\n{second}")).await;
        telegram.fail_next("sendMessage", 429, json!({ "parameters": { "retry_after": 3_600 } }));
        let failed = sender.deliver(&message).await;
        assert!(matches!(failed, Err(SendFailure::NotSent(_))), "{failed:?}");
        assert_eq!(sender.deliver(&message).await, Ok(()));
        assert_eq!(telegram.shown(7), [first, second]);
        assert!(sender.begun.lock().is_empty());
    }

    #[test]
    fn a_reply_names_its_question_in_groups_only() {
        let chat = |chat| TelegramChat { chat, topic: None };
        assert_eq!(reply_to(chat(-1), Some("5")), Some(5));
        assert_eq!(reply_to(chat(1), Some("5")), None);
        assert_eq!(reply_to(chat(-1), Some("x")), None);
    }
}

//! Reads new messages of a folder, and waits for more. What was read is remembered by number: flags belong to the owner of the mailbox.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hob_core::Backoff;
use hob_db::{DatabaseError, DbResult};
use hob_mail::{ImapSession, MailAccount, MailError, MailMessage, MessageLimits};
use hob_process::{Supervised, supervise};
use parking_lot::Mutex;
use thiserror::Error;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::answer_limit::AnswersPerHour;
use super::incoming::SenderRules;
use super::thread::CHANNEL;
use crate::blocking::blocking;
use crate::listener::Listener;
use crate::message_queue::MessageQueue;
use crate::received_file::MAX_FILE_BYTES;
use crate::status::StatusCell;
use crate::status_transitions::Trigger;
use crate::store::ChannelStore;
use crate::types::ChannelStatus;

/// The most bytes of a message that are read: a file of the largest size, encoded in base64, is a third larger.
const MAX_MESSAGE_BYTES: usize = 24 << 20;

/// The longest text of a message. Longer ones are refused with a reply, so a little more than that is enough.
const MAX_TEXT_CHARS: usize = 60_000;

/// Messages that are taken in before the position is looked at again.
const BATCH: usize = 100;

/// How often a message is read during which the connection fails, before it is skipped. With the pauses, that takes minutes.
const ATTEMPTS: u32 = 10;

/// A failure that is certainly one of the message counts as so many.
const OWN_FAILURE: u32 = 2;

/// The message that could not be read, and how often that was tried.
#[derive(Debug, Default)]
pub(super) struct FailedRead {
    uid: u32,
    times: u32,
}

/// Why reading ended.
#[derive(Debug, Error)]
enum EmailReadError {
    #[error(transparent)]
    Mail(#[from] MailError),
    #[error("the database does not say which e-mails were answered: {0}")]
    Database(#[from] DatabaseError),
    #[error("the mail server has an e-mail and does not deliver it")]
    Withheld,
    #[error("an e-mail cannot be parsed")]
    Unparsed,
    #[error("Hob stops")]
    Stopped,
}

impl EmailReadError {
    /// How much the failure counts against the message that was read; `None` if it has nothing to do with it.
    fn weight(&self) -> Option<u32> {
        match self {
            EmailReadError::Mail(
                MailError::Refused { .. } | MailError::TooLong { .. } | MailError::Malformed { .. },
            )
            | EmailReadError::Withheld
            | EmailReadError::Unparsed => Some(OWN_FAILURE),
            EmailReadError::Mail(_) => Some(1),
            EmailReadError::Database(_) | EmailReadError::Stopped => None,
        }
    }
}

pub(super) struct EmailListener {
    pub account: MailAccount,
    pub folder: String,
    pub rules: SenderRules,
    /// `None` for no limit.
    pub answer_limit: Option<AnswersPerHour>,
    /// `None` if nothing can be saved: then only messages that arrive while Hob runs are answered.
    pub store: Option<Arc<dyn ChannelStore>>,
    /// How far the folder was read, if nothing can be saved.
    pub unsaved: Mutex<Option<Position>>,
    /// How long one wait for new messages lasts.
    pub idle_for: Duration,
    /// The pause between two looks, where the server does not report new messages.
    pub poll_interval: Duration,
    pub backoff: Backoff,
    /// A sender cannot stop the channel with a message that takes too long, or that the server cannot deliver.
    pub failed: Mutex<FailedRead>,
    pub queue: MessageQueue,
    pub status: StatusCell,
}

/// How far the folder was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    uid_validity: u32,
    uid: u32,
}

impl Position {
    fn text(self) -> String {
        format!("{} {}", self.uid_validity, self.uid)
    }

    fn parse(text: &str) -> Option<Self> {
        let (uid_validity, uid) = text.split_once(' ')?;
        Some(Position { uid_validity: uid_validity.parse().ok()?, uid: uid.parse().ok()? })
    }
}

#[async_trait]
impl Listener for EmailListener {
    async fn listen(&self, stop: CancellationToken) {
        let resumed = self.queue.resume(|message| message.channel == CHANNEL);
        if stop.run_until_cancelled(resumed).await.is_none() {
            return;
        }
        supervise(self, self.backoff, &stop).await;
    }
}

impl Supervised for &EmailListener {
    async fn run(&mut self, stop: &CancellationToken) -> Duration {
        let since = Instant::now();
        let Some(Err(error)) = stop.run_until_cancelled(self.attend()).await else {
            return since.elapsed();
        };
        // A server that closes a connection from time to time is no problem.
        let is_new = match error {
            EmailReadError::Mail(MailError::Closed)
                if self.status.get().status == ChannelStatus::Connected =>
            {
                self.status.note(Trigger::Dropped);
                false
            }
            EmailReadError::Stopped => false,
            _ => self.status.problem(Trigger::Unreachable, &error.to_string()),
        };
        if is_new {
            tracing::warn!(
                %error,
                "e-mails cannot be read; Hob tries again. 'hob channel status' tests the mail servers"
            );
        }
        since.elapsed()
    }
}

impl EmailListener {
    /// Reads messages until the connection ends.
    async fn attend(&self) -> Result<(), EmailReadError> {
        // First: without it, messages would be skipped.
        let saved = self.saved().await?;
        let mut session = ImapSession::open(&self.account).await?;
        let folder = session.examine(&self.folder).await?;
        let mut position = self.position(saved, &mut session, folder.uid_validity).await?;
        self.status.note(Trigger::Reached);
        tracing::info!(folder = %self.folder, "reading e-mails");
        loop {
            let new = session.after(position.uid).await?;
            for uid in new.iter().take(BATCH) {
                let next = Position { uid: *uid, ..position };
                if let Err(error) = self.take(&mut session, next).await {
                    if error.weight().is_some_and(|weight| self.is_given_up(*uid, weight)) {
                        tracing::warn!(
                            uid,
                            %error,
                            "an e-mail cannot be read and is skipped. Answer it yourself"
                        );
                        self.note(next).await;
                    }
                    return Err(error);
                }
                position = next;
                self.note(position).await;
            }
            if new.len() > BATCH {
                continue;
            }
            if session.has_idle() {
                session.idle(self.idle_for).await?;
            } else {
                sleep(self.poll_interval).await;
                session.noop().await?;
            }
        }
    }

    /// Counts a message that could not be read. Returns whether that was tried often enough.
    fn is_given_up(&self, uid: u32, weight: u32) -> bool {
        let mut failed = self.failed.lock();
        let times = if failed.uid == uid { failed.times.saturating_add(weight) } else { weight };
        *failed = FailedRead { uid, times };
        times >= ATTEMPTS
    }

    /// Where to continue. The first time, and when the server has renumbered the folder, it is the end of the folder: old messages need
    /// no answer.
    async fn position(
        &self,
        saved: Option<Position>,
        session: &mut ImapSession,
        uid_validity: u32,
    ) -> Result<Position, EmailReadError> {
        if let Some(saved) = saved.filter(|saved| saved.uid_validity == uid_validity) {
            return Ok(saved);
        }
        if saved.is_some() {
            tracing::warn!(
                folder = %self.folder,
                "the mail server has renumbered the folder; Hob answers only new e-mails. Answer older ones \
                 yourself"
            );
        }
        let position = Position { uid_validity, uid: session.last().await?.unwrap_or(0) };
        // The next attempt would skip what arrives until then.
        self.save(position).await?;
        Ok(position)
    }

    /// The name under which the position is saved. Another account or folder has another one.
    fn place(&self) -> String {
        format!("{CHANNEL} {}@{} {}", self.account.user, self.account.host, self.folder)
    }

    async fn saved(&self) -> Result<Option<Position>, EmailReadError> {
        let Some(store) = self.store.clone() else { return Ok(*self.unsaved.lock()) };
        let place = self.place();
        let text = blocking(move || store.position(&place)).await.ok_or(EmailReadError::Stopped)??;
        Ok(text.as_deref().and_then(Position::parse))
    }

    async fn save(&self, position: Position) -> DbResult<()> {
        let Some(store) = self.store.clone() else {
            *self.unsaved.lock() = Some(position);
            return Ok(());
        };
        let place = self.place();
        blocking(move || store.set_position(&place, &position.text())).await.unwrap_or(Ok(()))
    }

    /// Saves a position. If that fails, the next attempt reads messages again, which are recognised by their ids.
    async fn note(&self, position: Position) {
        if let Err(error) = self.save(position).await {
            tracing::warn!(
                %error,
                "the position in the mailbox is not saved; Hob reads e-mails again. 'hob doctor' checks the \
                 database"
            );
        }
    }

    /// Puts a message into the queue, if it is to be answered.
    async fn take(&self, session: &mut ImapSession, position: Position) -> Result<(), EmailReadError> {
        let Some(bytes) = session.message(position.uid, MAX_MESSAGE_BYTES).await? else {
            // It was deleted, or the server does not deliver it this time.
            let is_deleted = session.summaries(&[position.uid]).await?.is_empty();
            return if is_deleted { Ok(()) } else { Err(EmailReadError::Withheld) };
        };
        let limits = MessageLimits { text_chars: MAX_TEXT_CHARS, attachment_bytes: MAX_FILE_BYTES };
        let read = blocking(move || MailMessage::read(&bytes, limits)).await;
        let Some(message) = read.ok_or(EmailReadError::Unparsed)? else {
            tracing::warn!(uid = position.uid, "an e-mail has no header and is skipped. Answer it yourself");
            return Ok(());
        };
        let number = format!("uid-{}-{}", position.uid_validity, position.uid);
        match self.rules.question(message, &number) {
            Ok(question) if !self.may_be_answered(&question.sender) => {
                tracing::debug!(
                    uid = position.uid,
                    "an e-mail is not answered: its sender got too many answers"
                );
            }
            Ok(question) => {
                if !self.queue.accept_repeated(question).await {
                    return Err(EmailReadError::Stopped);
                }
            }
            Err(reason) => tracing::info!(uid = position.uid, %reason, "an e-mail is not answered"),
        }
        Ok(())
    }

    fn may_be_answered(&self, sender: &str) -> bool {
        self.answer_limit.as_ref().is_none_or(|limit| limit.allow(sender))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_as_it_was_written() {
        let position = Position { uid_validity: 3_857_529_045, uid: 12 };
        assert_eq!(Position::parse(&position.text()), Some(position));
        for bad in ["", "1", "1 x", "-1 2"] {
            assert_eq!(Position::parse(bad), None, "{bad}");
        }
    }
}

//! Receives messages by long polling. An update is confirmed by the next request, which is sent after all messages of this one are in
//! the queue: after a crash Telegram sends them again, and the queue knows them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hob_core::Backoff;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::api::{TelegramApi, TelegramBot, TelegramError};
use super::incoming;
use super::target::CHANNEL;
use crate::listener::Listener;
use crate::message_queue::MessageQueue;
use crate::status::StatusCell;
use crate::status_transitions::Trigger;

/// The pause after an error that only a person can correct.
const LONG_PAUSE: Duration = Duration::from_secs(30);

/// The pause while another process of this bot may still be ending.
const CONFLICT_PAUSE: Duration = Duration::from_secs(3);

/// The longest wait that Telegram may ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// A server that answers with nothing new at once must not be asked in a busy loop.
const SHORTEST_POLL: Duration = Duration::from_millis(200);

pub(super) struct TelegramListener {
    pub api: Arc<TelegramApi>,
    pub answers_groups: bool,
    pub poll_wait: Duration,
    pub status: StatusCell,
    pub queue: MessageQueue,
}

#[async_trait]
impl Listener for TelegramListener {
    async fn listen(&self, stop: CancellationToken) {
        let resumed = self.queue.resume(|message| message.channel == CHANNEL);
        if stop.run_until_cancelled(resumed).await.is_none() {
            return;
        }
        let mut delays = Backoff::default().delays();
        while !stop.is_cancelled() {
            let since = Instant::now();
            let Some(error) = self.receive(&stop).await else { return };
            delays.after_running_for(since.elapsed());
            let pause = match &error {
                TelegramError::Token => LONG_PAUSE,
                TelegramError::Conflict { .. } => CONFLICT_PAUSE,
                TelegramError::TooManyRequests { wait } => (*wait).min(LONGEST_WAIT),
                TelegramError::Refused { .. }
                | TelegramError::Unreachable { .. }
                | TelegramError::BadAnswer { .. } => delays.next_delay(),
            };
            if self.status.problem(Trigger::Unreachable, &error.to_string()) {
                tracing::warn!(
                    %error,
                    "messages from Telegram cannot be received; Hob tries again. 'hob channel status' tests \
                     the connection"
                );
            }
            if stop.run_until_cancelled(sleep(pause)).await.is_none() {
                return;
            }
        }
    }
}

impl TelegramListener {
    /// Receives until an error; `None` after a stop.
    async fn receive(&self, stop: &CancellationToken) -> Option<TelegramError> {
        let bot = match stop.run_until_cancelled(self.api.get_me()).await? {
            Ok(bot) => bot,
            Err(error) => return Some(error),
        };
        let mut offset = None;
        // The first answer comes at once, so that the status is soon known.
        let mut wait = Duration::ZERO;
        loop {
            let asked = Instant::now();
            let updates = match stop.run_until_cancelled(self.api.get_updates(offset, wait)).await? {
                Ok(updates) => updates,
                Err(error) => return Some(error),
            };
            if wait.is_zero() {
                wait = self.poll_wait;
                self.status.note(Trigger::Reached);
                tracing::info!(bot = %bot.username, "connected to Telegram");
            }
            let confirmed = offset;
            for update in &updates {
                // A message that is not saved is not confirmed.
                self.accept(update, &bot, stop).await?;
                if let Some(number) = incoming::number(update) {
                    offset = Some(offset.unwrap_or(i64::MIN).max(number.saturating_add(1)));
                }
            }
            // Nothing is new, or nothing of it has a number that could be confirmed.
            if offset == confirmed {
                let pause = SHORTEST_POLL.saturating_sub(asked.elapsed());
                stop.run_until_cancelled(sleep(pause)).await?;
            }
        }
    }

    /// Puts an update into the queue; `None` if Hob stops before it is saved.
    async fn accept(
        &self,
        update: &serde_json::Value,
        bot: &TelegramBot,
        stop: &CancellationToken,
    ) -> Option<()> {
        let Some(message) = incoming::read(update, bot, self.answers_groups) else { return Some(()) };
        stop.run_until_cancelled(self.queue.accept_repeated(message)).await?.then_some(())
    }
}

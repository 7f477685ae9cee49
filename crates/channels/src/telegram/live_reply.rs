//! Shows the answer to a message while it is written: the sign that the bot writes, and its text, which is edited as it grows.
//!
//! A task does that, so that the answer never waits for Telegram. It ends after the step that it is in, and not in the middle of one:
//! a message whose number is lost could not become the complete answer.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hob_core::TextSink;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::api::{TelegramApi, TelegramError};
use super::outgoing_body::{edit_body, message_body};
use super::split::{MAX_UNITS, split};
use super::target::TelegramChat;
use crate::live_reply::LiveReply;
use crate::received_file::ChannelFile;

/// How often the sign is sent. Telegram shows it for five seconds.
const TYPING_EVERY: Duration = Duration::from_secs(4);

/// How often a text is edited. In groups, Telegram allows fewer messages.
const EDIT_EVERY: Duration = Duration::from_secs(1);
const EDIT_EVERY_IN_GROUPS: Duration = Duration::from_secs(4);

/// A shorter text is not shown yet.
const FIRST_CHARS: usize = 40;

/// Ends a text that is not complete.
const MORE: &str = " …";

/// What is known of an answer in progress.
#[derive(Default)]
struct Progress {
    text: String,
    /// The message that shows the text.
    message: Option<i64>,
}

/// Previews that are remembered, and for how long: a little longer than an answer may take.
const MAX_PREVIEWS: usize = 1_000;
pub(super) const REMEMBERED_FOR: Duration = Duration::from_secs(900);

/// The answers in progress, by the key of the complete reply.
#[derive(Default)]
pub(super) struct Previews {
    held: Mutex<HashMap<String, LiveMessage>>,
}

impl Previews {
    /// Returns whether there is room for it.
    fn add(&self, key: &str, message: LiveMessage) -> bool {
        let mut held = self.held.lock();
        held.retain(|_, message| message.since.elapsed() < REMEMBERED_FOR);
        let has_room = held.len() < MAX_PREVIEWS;
        if has_room {
            held.insert(key.to_owned(), message);
        }
        has_room
    }

    pub fn take(&self, key: &str) -> Option<LiveMessage> {
        self.held.lock().remove(key)
    }

    /// Remembers a message that shows the text so far, for the next attempt to complete it.
    pub fn keep(&self, key: &str, message: i64) {
        let progress = Progress { message: Some(message), ..Progress::default() };
        let kept = LiveMessage {
            progress: Arc::new(Mutex::new(progress)),
            stop: CancellationToken::new(),
            task: Arc::default(),
            since: Instant::now(),
        };
        self.add(key, kept);
    }
}

/// An answer in progress, for the sender of the complete one.
pub(super) struct LiveMessage {
    progress: Arc<Mutex<Progress>>,
    stop: CancellationToken,
    task: Arc<Mutex<Option<JoinHandle<()>>>>,
    since: Instant,
}

impl LiveMessage {
    /// Stops showing, and returns the number of the message that shows the text so far.
    pub async fn ended(self) -> Option<i64> {
        self.stop.cancel();
        let task = self.task.lock().take();
        if let Some(task) = task {
            // It fails only after a panic, which is logged.
            let _ = task.await;
        }
        self.progress.lock().message
    }
}

/// Where a preview is shown.
#[derive(Clone)]
pub(super) struct LivePlace {
    pub target: TelegramChat,
    /// The message that it answers, in groups.
    pub reply_to: Option<i64>,
    /// The key of the complete reply.
    pub key: String,
}

/// The reply to one message while it is written.
pub(super) struct TelegramLive {
    api: Arc<TelegramApi>,
    place: LivePlace,
    previews: Arc<Previews>,
    progress: Arc<Mutex<Progress>>,
    stop: CancellationToken,
    task: Arc<Mutex<Option<JoinHandle<()>>>>,
}

impl TelegramLive {
    pub fn new(api: Arc<TelegramApi>, previews: Arc<Previews>, place: LivePlace) -> Self {
        TelegramLive {
            api,
            place,
            previews,
            progress: Arc::default(),
            stop: CancellationToken::new(),
            task: Arc::default(),
        }
    }

    fn message(&self) -> LiveMessage {
        LiveMessage {
            progress: Arc::clone(&self.progress),
            stop: self.stop.clone(),
            task: Arc::clone(&self.task),
            since: Instant::now(),
        }
    }
}

impl Drop for TelegramLive {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

#[async_trait]
impl TextSink for TelegramLive {
    async fn text(&self, piece: &str) {
        let mut progress = self.progress.lock();
        // What is beyond the first message is not shown before the end.
        if progress.text.len() < 4 * MAX_UNITS {
            progress.text.push_str(piece);
        }
    }
}

#[async_trait]
impl LiveReply for TelegramLive {
    fn shows_text(&self) -> bool {
        self.task.lock().is_some()
    }

    fn begin(&self) {
        let mut task = self.task.lock();
        // A preview that is not remembered would stay beside the complete answer.
        if task.is_some() || !self.previews.add(&self.place.key, self.message()) {
            return;
        }
        let shown = Display {
            api: Arc::clone(&self.api),
            place: self.place.clone(),
            progress: Arc::clone(&self.progress),
        };
        let stop = self.stop.clone();
        *task = Some(tokio::spawn(async move { shown.run(&stop).await }));
    }

    async fn load(&self, file: &ChannelFile) -> Result<Vec<u8>, String> {
        let Some(reference) = &file.reference else { return Err("it is not available anymore".to_owned()) };
        self.api.download(reference).await.map_err(|error| {
            tracing::warn!(%error, "a file cannot be downloaded from Telegram; its sender gets a message");
            match error {
                TelegramError::Refused { description, .. } if description.contains("too big") => {
                    "it is larger than 20 MB".to_owned()
                }
                _ => "it cannot be downloaded".to_owned(),
            }
        })
    }
}

/// What the task shows.
struct Display {
    api: Arc<TelegramApi>,
    place: LivePlace,
    progress: Arc<Mutex<Progress>>,
}

impl Display {
    async fn run(&self, stop: &CancellationToken) {
        let edit_every = if self.place.target.is_group() { EDIT_EVERY_IN_GROUPS } else { EDIT_EVERY };
        let mut typing_at = Instant::now();
        let mut edit_at = Instant::now() + edit_every;
        let mut shown = String::new();
        while !stop.is_cancelled() {
            let now = Instant::now();
            let mut outcome = Ok(());
            if now >= typing_at {
                typing_at = now + TYPING_EVERY;
                outcome = self.api.send_typing(&self.place.target.fields()).await;
            } else if now >= edit_at {
                edit_at = now + edit_every;
                outcome = self.show(&mut shown).await;
            }
            match outcome {
                Ok(()) => {}
                Err(TelegramError::TooManyRequests { wait }) => {
                    (typing_at, edit_at) = (Instant::now() + wait, Instant::now() + wait);
                }
                // Only the preview is missing.
                Err(error) => tracing::debug!(%error, "cannot show an answer in progress"),
            }
            let pause = typing_at.min(edit_at).saturating_duration_since(Instant::now());
            if stop.run_until_cancelled(sleep(pause)).await.is_none() {
                return;
            }
        }
    }

    /// Sends or edits the message, if there is more text than `shown`.
    async fn show(&self, shown: &mut String) -> Result<(), TelegramError> {
        let (text, message) = {
            let progress = self.progress.lock();
            (preview(&progress.text), progress.message)
        };
        let Some(text) = text.filter(|text| text != shown) else { return Ok(()) };
        match message {
            Some(message) => self.api.edit_message(&edit_body(self.place.target, message, &text)).await?,
            None => {
                let body: Value = message_body(self.place.target, &text, self.place.reply_to);
                let sent = self.api.send_message(&body).await?;
                self.progress.lock().message = Some(sent.message_id);
            }
        }
        *shown = text;
        Ok(())
    }
}

/// What is shown of a text that is not complete; `None` if it is too short.
fn preview(text: &str) -> Option<String> {
    text.chars().nth(FIRST_CHARS)?;
    let first = split(text, MAX_UNITS - MORE.len()).into_iter().next()?;
    Some(format!("{first}{MORE}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preview_has_some_text_and_fits_into_one_message() {
        assert_eq!(preview("short"), None);
        let text = "a sentence that is long enough to be shown";
        assert_eq!(preview(text), Some(format!("{text} …")));
        assert!(preview(&"x".repeat(10_000)).unwrap().encode_utf16().count() <= MAX_UNITS);
    }
}

//! Sends through the process that is connected, if it is not this one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use hob_core::random_id;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

use super::lease::Lease;
use super::request::{HolderReply, HolderRequest};
use crate::blocking::blocking;
use crate::live_reply::LiveReply;
use crate::outgoing::{MessageSender, Outgoing, SendFailure};
use crate::store::{NewRequest, RequestState, SharedChannelStore};
use crate::types::ChannelMessage;

/// How often the watch is asked for the reply. That costs no query.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How often the database is asked, in case an announcement was lost.
const ASK_EVERY: Duration = Duration::from_secs(1);

const NO_HOLDER: &str =
    "no process of Hob is connected to the channel. Check the log of those that have it switched on";

/// A sender of a channel that several processes share.
pub(crate) struct SharedSender {
    direct: Arc<dyn MessageSender>,
    lease: Arc<Lease>,
    is_listening: AtomicBool,
}

impl SharedSender {
    pub fn new(direct: Arc<dyn MessageSender>, lease: Arc<Lease>) -> Self {
        SharedSender { direct, lease, is_listening: AtomicBool::new(false) }
    }

    /// Whether this process sends itself: it is connected, or it is a single command that never connects.
    fn sends_itself(&self) -> bool {
        self.lease.is_held() || !self.is_listening.load(Ordering::Relaxed)
    }

    /// Asks the process that is connected, and waits for its reply.
    async fn ask(&self, key: &str, request: &HolderRequest) -> Result<HolderReply, SendFailure> {
        let times = self.lease.times();
        let wait = times.taken_within + times.answered_within;
        // A request can always be serialised.
        let text = serde_json::to_string(request).unwrap_or_default();
        let (store, channel, asked_key) =
            (self.lease.store(), self.lease.channel().to_owned(), key.to_owned());
        let put = blocking(move || {
            store.ask_holder(&channel, NewRequest { key: &asked_key, request: &text, wait })
        });
        match put.await {
            Some(Ok(true)) => {}
            Some(Ok(false)) => {
                let reason = "too many messages wait for the process that is connected to the channel";
                return Err(SendFailure::NotSent(reason.to_owned()));
            }
            // The key is the same for every attempt, so a request that is there all the same is not doubled.
            Some(Err(error)) => return Err(SendFailure::NotSent(error.to_string())),
            None => return Err(SendFailure::NotSent("Hob stopped".to_owned())),
        }
        let mut asked = AskedRequest { store: self.lease.store(), key: key.to_owned(), is_open: true };
        let reply = self.wait_for_reply(&asked, Instant::now()).await;
        asked.is_open = false;
        reply
    }

    async fn wait_for_reply(&self, asked: &AskedRequest, since: Instant) -> Result<HolderReply, SendFailure> {
        let times = self.lease.times();
        let watching = asked.store();
        let mut watch = blocking(move || watching.watch_requests()).await.and_then(Result::ok);
        let mut is_taken = false;
        let mut last_asked: Option<Instant> = None;
        loop {
            let is_announced = watch.as_mut().is_some_and(|watch| watch.has_changed().unwrap_or(true));
            if is_announced || last_asked.is_none_or(|last| last.elapsed() >= ASK_EVERY) {
                last_asked = Some(Instant::now());
                match asked.state().await {
                    Some(RequestState::Answered(reply)) => {
                        return serde_json::from_str(&reply)
                            .map_err(|_| SendFailure::Unknown("the reply is not understood".to_owned()));
                    }
                    Some(RequestState::Gone) => {
                        return Err(SendFailure::Unknown("its request was deleted".to_owned()));
                    }
                    Some(RequestState::Taken) => is_taken = true,
                    Some(RequestState::Waiting) => is_taken = false,
                    // The database does not answer: asked again until the time is up.
                    None => {}
                }
            }
            if since.elapsed() >= times.taken_within && !is_taken {
                match asked.withdraw().await {
                    Some(true) => return Err(SendFailure::NotSent(NO_HOLDER.to_owned())),
                    Some(false) => is_taken = true,
                    None => return Err(SendFailure::Unknown("the database does not answer".to_owned())),
                }
            }
            if since.elapsed() >= times.taken_within + times.answered_within {
                let reason = "the process that is connected to the channel did not answer in time";
                return Err(SendFailure::Unknown(reason.to_owned()));
            }
            sleep(LOOK_EVERY).await;
        }
    }
}

/// A request of this process. One that nothing waits for any more is deleted, if it was not taken.
struct AskedRequest {
    store: Arc<dyn SharedChannelStore>,
    key: String,
    is_open: bool,
}

impl AskedRequest {
    fn store(&self) -> Arc<dyn SharedChannelStore> {
        Arc::clone(&self.store)
    }

    async fn state(&self) -> Option<RequestState> {
        let (store, key) = (self.store(), self.key.clone());
        blocking(move || store.request_state(&key)).await?.ok()
    }

    async fn withdraw(&self) -> Option<bool> {
        let (store, key) = (self.store(), self.key.clone());
        blocking(move || store.withdraw(&key)).await?.ok()
    }
}

impl Drop for AskedRequest {
    fn drop(&mut self) {
        if !self.is_open {
            return;
        }
        let (store, key) = (self.store(), self.key.clone());
        if let Ok(runtime) = Handle::try_current() {
            // If that fails, the request ends by itself.
            runtime.spawn_blocking(move || store.withdraw(&key));
        }
    }
}

#[async_trait]
impl MessageSender for SharedSender {
    async fn deliver(&self, message: &Outgoing) -> Result<(), SendFailure> {
        if self.sends_itself() {
            match self.direct.deliver(message).await {
                // The lease was lost meanwhile.
                Err(SendFailure::NotSent(_)) if !self.sends_itself() => {}
                outcome => return outcome,
            }
        }
        match self.ask(&message.key, &HolderRequest::Deliver(message.clone())).await? {
            HolderReply::Delivered(outcome) => outcome,
            HolderReply::Channels(_) | HolderReply::NotUnderstood => Err(SendFailure::Refused(
                "the process that is connected is an older version of Hob".to_owned(),
            )),
        }
    }

    async fn channels(&self) -> Result<Vec<String>, String> {
        let listed = self.direct.channels().await;
        if listed.is_ok() || self.sends_itself() {
            return listed;
        }
        let asked = self.ask(&random_id("list-"), &HolderRequest::ListChannels).await;
        match asked.map_err(|failure| failure.to_string())? {
            HolderReply::Channels(channels) => channels,
            HolderReply::Delivered(_) | HolderReply::NotUnderstood => listed,
        }
    }

    fn check_recipient(&self, channel: &str, conversation_id: Option<&str>) -> Result<(), SendFailure> {
        self.direct.check_recipient(channel, conversation_id)
    }

    fn live(&self, message: &ChannelMessage, key: &str) -> Arc<dyn LiveReply> {
        // Only the process that is connected answers messages.
        self.direct.live(message, key)
    }

    fn set_listening(&self, is_listening: bool) {
        self.is_listening.store(is_listening, Ordering::Relaxed);
        self.direct.set_listening(is_listening);
    }
}

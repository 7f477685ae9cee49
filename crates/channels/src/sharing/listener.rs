//! Listens while this process has the lease, and does what other processes ask.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use hob_db::ChangeWatch;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::lease::Lease;
use super::request::fulfil;
use crate::blocking::blocking;
use crate::listener::Listener;
use crate::message_queue::MessageQueue;
use crate::outgoing::MessageSender;
use crate::status::StatusCell;
use crate::status_transitions::Trigger;
use crate::store::TakenRequest;

/// Requests that are answered at once.
const CONCURRENT_REQUESTS: usize = 16;

/// How often the watch is asked for new requests. That costs no query.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How often requests are looked for while there is no watch.
const LOOK_WITHOUT_WATCH: Duration = Duration::from_secs(1);

/// A listener that waits for the lease of its channel.
pub(crate) struct LeasedListener {
    pub listener: Arc<dyn Listener>,
    pub lease: Arc<Lease>,
    /// Sends over the connection of this process.
    pub direct: Arc<dyn MessageSender>,
    pub queue: MessageQueue,
    pub status: StatusCell,
}

#[async_trait]
impl Listener for LeasedListener {
    async fn listen(&self, stop: CancellationToken) {
        while let Some(since) = stop.run_until_cancelled(self.lease.acquire(&self.status)).await {
            self.lease.set_held(true);
            self.status.note(Trigger::Connect);
            let connected = stop.child_token();
            let mut listening = self.listener.listen(connected.clone());
            tokio::select! {
                // Only after a stop.
                () = &mut listening => {
                    self.lease.set_held(false);
                    break;
                }
                () = self.lease.keep(since, &self.status) => {}
                () = self.answer_requests() => {}
            }
            self.lease.set_held(false);
            // At once: another process answers what is not answered when the lease ends.
            self.queue.interrupt();
            connected.cancel();
            listening.await;
            self.queue.pause().await;
        }
        self.lease.release().await;
    }
}

impl LeasedListener {
    /// Does what other processes ask. Never ends.
    async fn answer_requests(&self) {
        let mut watch = None;
        let mut running = FuturesUnordered::new();
        // Those that a holder before this one left.
        let mut has_more = true;
        loop {
            if watch.is_none() {
                watch = self.watch().await;
            }
            let last_look = Instant::now();
            if running.len() < CONCURRENT_REQUESTS
                && (has_more || watch.as_mut().is_none_or(|watch| watch.has_changed().unwrap_or(true)))
            {
                let most = CONCURRENT_REQUESTS - running.len();
                let taken = self.take(most).await;
                has_more = taken.len() == most;
                running.extend(taken.into_iter().map(|request| self.answer(request)));
            }
            let pause = if watch.is_some() { LOOK_EVERY } else { LOOK_WITHOUT_WATCH };
            let pause = pause.saturating_sub(last_look.elapsed());
            tokio::select! {
                () = sleep(pause) => {}
                Some(()) = running.next(), if !running.is_empty() => {}
            }
        }
    }

    async fn watch(&self) -> Option<ChangeWatch> {
        let store = self.lease.store();
        blocking(move || store.watch_requests()).await?.ok()
    }

    async fn take(&self, most: usize) -> Vec<TakenRequest> {
        let store = self.lease.store();
        let (channel, holder) = (self.lease.channel().to_owned(), self.lease.holder().to_owned());
        match blocking(move || store.take_requests(&channel, &holder, most)).await {
            Some(Ok(taken)) => taken,
            Some(Err(error)) => {
                tracing::debug!(%error, "cannot read the requests of other processes; trying again");
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    async fn answer(&self, request: TakenRequest) {
        let reply = fulfil(&request.request, self.direct.as_ref()).await;
        // A reply can always be serialised.
        let reply = serde_json::to_string(&reply).unwrap_or_default();
        let store = self.lease.store();
        if let Some(Err(error)) = blocking(move || store.answer(request.id, &reply)).await {
            tracing::warn!(
                %error,
                "the outcome of a message does not reach the Hob that sent it. 'hob doctor' checks the \
                 database"
            );
        }
    }
}

//! Changes by other processes: one connection listens, and counts by topic.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::future::pending;
use parking_lot::Mutex;
use tokio::runtime::Runtime;
use tokio::task::AbortHandle;
use tokio_postgres::AsyncMessage;

use super::pool::Connector;

/// The channel of all topics.
pub(super) const CHANNEL: &str = "hob";

/// How long to wait before the listening connection is made again.
const RECONNECT: Duration = Duration::from_secs(1);

/// A watch reports a change at least so often, in case a notification was lost.
const POLL_INTERVAL: Duration = Duration::from_secs(10);

/// Counts changes by topic.
#[derive(Default)]
pub(super) struct Listener {
    counts: Arc<Counts>,
    task: Mutex<Option<AbortHandle>>,
}

#[derive(Default)]
struct Counts(Mutex<HashMap<String, Arc<AtomicU64>>>);

impl Counts {
    fn of(&self, topic: &str) -> Arc<AtomicU64> {
        Arc::clone(self.0.lock().entry(topic.to_owned()).or_default())
    }

    fn add(&self, topic: &str) {
        if let Some(count) = self.0.lock().get(topic) {
            count.fetch_add(1, Ordering::Release);
        }
    }

    fn add_to_all(&self) {
        for count in self.0.lock().values() {
            count.fetch_add(1, Ordering::Release);
        }
    }
}

impl Listener {
    /// A watch of one topic. The first one starts to listen.
    pub(super) fn watch(&self, topic: &str, connector: &Connector, runtime: &Runtime) -> Topic {
        let count = self.counts.of(topic);
        let mut task = self.task.lock();
        if task.is_none() {
            let listening = listen(connector.clone(), Arc::clone(&self.counts));
            *task = Some(runtime.spawn(listening).abort_handle());
        }
        Topic { count, seen: None }
    }
}

/// Never ends by itself.
async fn listen(connector: Connector, counts: Arc<Counts>) {
    loop {
        if let Err(error) = listen_once(&connector, &counts).await {
            tracing::debug!(%error, "cannot listen for changes; trying again");
        }
        tokio::time::sleep(RECONNECT).await;
    }
}

/// Listens until the connection ends.
async fn listen_once(connector: &Connector, counts: &Counts) -> Result<(), crate::DatabaseError> {
    let (client, mut connection) = connector.connect().await?;
    let receive = async {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(change) = message {
                counts.add(change.payload());
            }
        }
    };
    let subscribe = async {
        if client.batch_execute(&format!("LISTEN {CHANNEL}")).await.is_ok() {
            // Changes from before are not announced.
            counts.add_to_all();
            pending().await
        }
    };
    tokio::select! {
        () = receive => {}
        () = subscribe => {}
    }
    Ok(())
}

/// Reports changes of one topic.
pub(crate) struct Topic {
    count: Arc<AtomicU64>,
    /// `None` before the first call.
    seen: Option<(u64, Instant)>,
}

impl Topic {
    pub(crate) fn has_changed(&mut self) -> bool {
        let count = self.count.load(Ordering::Acquire);
        let is_new = self.seen.is_none_or(|(seen, at)| seen != count || at.elapsed() >= POLL_INTERVAL);
        if is_new {
            self.seen = Some((count, Instant::now()));
        }
        is_new
    }
}

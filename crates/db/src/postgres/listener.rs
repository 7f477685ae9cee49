//! Changes by other processes: one connection listens, counts by topic, and passes messages on.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::future::pending;
use parking_lot::Mutex;
use tokio::runtime::Runtime;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::task::AbortHandle;
use tokio_postgres::AsyncMessage;

use super::connector::Connector;

/// The channel of all topics.
pub(super) const CHANNEL: &str = "hob";

/// How long to wait before the listening connection is made again.
const RECONNECT: Duration = Duration::from_secs(1);

/// A watch reports a change at least so often, in case a notification was lost.
pub(super) const POLL_INTERVAL: Duration = Duration::from_secs(10);

/// Messages that wait for a slow reader.
const MAX_QUEUED_MESSAGES: usize = 256;

/// Counts changes by topic, and passes messages on.
#[derive(Default)]
pub(super) struct Listener {
    topics: Arc<Topics>,
    task: Mutex<Option<AbortHandle>>,
}

/// The topics of which this process wants to know.
#[derive(Default)]
struct Topics {
    counts: Mutex<HashMap<String, Arc<AtomicU64>>>,
    readers: Mutex<HashMap<String, broadcast::Sender<TopicMessage>>>,
}

impl Topics {
    fn count_of(&self, topic: &str) -> Arc<AtomicU64> {
        Arc::clone(self.counts.lock().entry(topic.to_owned()).or_default())
    }

    fn messages_of(&self, topic: &str) -> broadcast::Receiver<TopicMessage> {
        let mut readers = self.readers.lock();
        let sender =
            readers.entry(topic.to_owned()).or_insert_with(|| broadcast::Sender::new(MAX_QUEUED_MESSAGES));
        sender.subscribe()
    }

    /// A notification names a topic. Behind it may stand a message.
    fn receive(&self, payload: &str) {
        let (topic, message) = match payload.split_once(' ') {
            Some((topic, message)) => (topic, Some(message)),
            None => (payload, None),
        };
        if let Some(count) = self.counts.lock().get(topic) {
            count.fetch_add(1, Ordering::Release);
        }
        if let (Some(message), Some(sender)) = (message, self.readers.lock().get(topic)) {
            // The readers may have left.
            let _ = sender.send(TopicMessage::Text(message.into()));
        }
    }

    /// What was announced before is not known.
    fn restart(&self) {
        for count in self.counts.lock().values() {
            count.fetch_add(1, Ordering::Release);
        }
        for sender in self.readers.lock().values() {
            let _ = sender.send(TopicMessage::Missed);
        }
    }
}

impl Listener {
    /// A watch of one topic. The first one starts to listen.
    pub(super) fn watch(&self, topic: &str, connector: &Connector, runtime: &Runtime) -> Topic {
        let count = self.topics.count_of(topic);
        self.start(connector, runtime);
        Topic { count, seen: None }
    }

    /// The messages of one topic from now on. The first reader starts to listen.
    pub(super) fn messages(&self, topic: &str, connector: &Connector, runtime: &Runtime) -> TopicMessages {
        let receiver = self.topics.messages_of(topic);
        self.start(connector, runtime);
        TopicMessages { receiver }
    }

    /// Listens, if that has not begun.
    fn start(&self, connector: &Connector, runtime: &Runtime) {
        let mut task = self.task.lock();
        if task.is_none() {
            let listening = listen(connector.clone(), Arc::clone(&self.topics));
            *task = Some(runtime.spawn(listening).abort_handle());
        }
    }
}

/// Never ends by itself.
async fn listen(connector: Connector, topics: Arc<Topics>) {
    loop {
        if let Err(error) = listen_once(&connector, &topics).await {
            tracing::debug!(%error, "cannot listen for changes; trying again");
        }
        tokio::time::sleep(RECONNECT).await;
    }
}

/// Listens until the connection ends.
async fn listen_once(connector: &Connector, topics: &Topics) -> Result<(), crate::DatabaseError> {
    let (client, mut connection) = connector.connect().await?;
    let receive = async {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(change) = message {
                topics.receive(change.payload());
            }
        }
    };
    let subscribe = async {
        if client.batch_execute(&format!("LISTEN {CHANNEL}")).await.is_ok() {
            // Changes from before are not announced.
            topics.restart();
            pending().await
        }
    };
    tokio::select! {
        () = receive => {}
        () = subscribe => {}
    }
    Ok(())
}

/// A message of a process, or a gap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TopicMessage {
    Text(Arc<str>),
    /// Messages may be lost: the connection is new, or the reader was too slow.
    Missed,
}

/// The messages of one topic, also those of this process.
pub struct TopicMessages {
    receiver: broadcast::Receiver<TopicMessage>,
}

impl TopicMessages {
    /// The next message; `None` if the database is closed.
    pub async fn next(&mut self) -> Option<TopicMessage> {
        match self.receiver.recv().await {
            Ok(message) => Some(message),
            Err(RecvError::Lagged(_)) => Some(TopicMessage::Missed),
            Err(RecvError::Closed) => None,
        }
    }
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

//! Sends spans to a collector, in batches and beside everything else: a collector that is slow or gone costs spans, never an
//! answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hob_core::EngineError;
use hob_engines::{Endpoint, EndpointOptions};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::otlp;
use super::span::{Finished, Queue, Spans};

/// Where a collector takes traces.
const PATH: &str = "/v1/traces";

/// Spans that may wait to be sent; further ones are counted and dropped.
const MOST_WAITING: usize = 4096;

/// Spans of one request to the collector.
const MOST_AT_ONCE: usize = 512;

/// How long a span waits for others to be sent with.
const GATHERING: Duration = Duration::from_secs(1);

/// The longest a collector may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The same for the last spans of all: whoever ends the program does not want to wait.
const LAST_PATIENCE: Duration = Duration::from_secs(2);

/// The traces of a house. Stops with its value; [`Self::close`] sends what is left.
pub(crate) struct Traces {
    spans: Spans,
    stop: DropGuard,
    sending: TaskTracker,
}

impl Traces {
    /// Sends to the collector at `address` from now on; nowhere without one.
    pub(crate) fn open(address: Option<&str>) -> Self {
        let traces = Traces {
            spans: Spans::default(),
            stop: CancellationToken::new().drop_guard(),
            sending: TaskTracker::new(),
        };
        let Some(address) = address else { return traces };
        // Many write the whole path, as other programs want it.
        let host = address.trim_end_matches('/').trim_end_matches(PATH);
        let options =
            EndpointOptions { timeout: PATIENCE, ..EndpointOptions::new("the trace collector", host) };
        match Endpoint::new(options) {
            Ok(collector) => traces.begin(collector),
            Err(error) => {
                tracing::warn!(%error, "no traces are sent");
                traces
            }
        }
    }

    fn begin(self, collector: Endpoint) -> Self {
        let (sender, receiver) = mpsc::channel(MOST_WAITING);
        let queue = Arc::new(Queue { sender, dropped: AtomicU64::new(0) });
        let export = Export {
            collector,
            receiver,
            queue: Arc::clone(&queue),
            stop: self.stop.token().clone(),
            is_failing: false,
        };
        self.sending.spawn(export.run());
        Traces { spans: Spans::through(queue), ..self }
    }

    pub(crate) fn spans(&self) -> &Spans {
        &self.spans
    }

    /// Sends what is left, within a moment.
    pub(crate) async fn close(self) {
        drop(self.stop);
        self.sending.close();
        self.sending.wait().await;
    }
}

/// The task that sends.
struct Export {
    collector: Endpoint,
    receiver: mpsc::Receiver<Finished>,
    queue: Arc<Queue>,
    stop: CancellationToken,
    /// Whether the last attempt failed, so that a collector that is gone is told of once.
    is_failing: bool,
}

impl Export {
    async fn run(mut self) {
        let stop = self.stop.clone();
        let given_up = async {
            stop.cancelled().await;
            tokio::time::sleep(LAST_PATIENCE).await;
        };
        tokio::select! {
            () = self.send_all() => {}
            // What is not sent by now is lost with the program.
            () = given_up => {}
        }
    }

    /// Sends until it is time to stop and nothing is left.
    async fn send_all(&mut self) {
        let mut batch = Vec::new();
        loop {
            self.gather(&mut batch).await;
            if batch.is_empty() {
                return;
            }
            self.send(&mut batch).await;
        }
    }

    /// Waits for a span, and a moment for others. When it is time to stop, takes only what is there.
    async fn gather(&mut self, batch: &mut Vec<Finished>) {
        let (receiver, stop) = (&mut self.receiver, &self.stop);
        let filling = async {
            receiver.recv_many(batch, MOST_AT_ONCE).await;
            let full = async {
                while batch.len() < MOST_AT_ONCE {
                    receiver.recv_many(batch, MOST_AT_ONCE - batch.len()).await;
                }
            };
            let _ = tokio::time::timeout(GATHERING, full).await;
        };
        if stop.run_until_cancelled(filling).await.is_none() {
            while batch.len() < MOST_AT_ONCE
                && let Ok(next) = receiver.try_recv()
            {
                batch.push(next);
            }
        }
    }

    /// Sends and empties the batch. One that cannot be sent is not kept: the next will come.
    async fn send(&mut self, batch: &mut Vec<Finished>) {
        if batch.is_empty() {
            return;
        }
        let sent = tokio::time::timeout(PATIENCE, self.post(otlp::body(batch))).await;
        let sent = sent.unwrap_or_else(|_| {
            Err(EngineError::Timeout { engine: self.collector.engine().to_owned(), after: PATIENCE })
        });
        match sent {
            Ok(()) if self.is_failing => tracing::info!("the trace collector answers again"),
            Ok(()) => {}
            Err(error) => {
                self.queue.dropped.fetch_add(batch.len() as u64, Ordering::Relaxed);
                if !self.is_failing {
                    tracing::warn!(%error, "traces are lost until the collector answers");
                }
                self.is_failing = true;
                batch.clear();
                return;
            }
        }
        self.is_failing = false;
        batch.clear();
    }

    async fn post(&self, body: Vec<u8>) -> Result<(), EngineError> {
        let answer = self.collector.post(PATH, body).await?;
        let answer = self.collector.accept(answer).await?;
        // Read to its end, the connection serves again.
        self.collector.body(answer).await.map(drop)
    }
}

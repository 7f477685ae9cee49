//! Sends spans to a collector, in batches and in a task of its own: a slow or missing collector costs spans, never an answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hob_net::{DEFAULT_CONNECT_TIMEOUT, HttpClientOptions, ProxyUse, http_client, root_cause};
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest::{Client, Response};
use serde_json::Value;
use thiserror::Error;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use url::Url;

use super::otlp;
use super::span::{FinishedSpan, SpanQueue, Tracer};

/// Where a collector takes traces.
const PATH: &str = "/v1/traces";

/// Spans that may wait to be sent; further ones are counted and dropped.
const MOST_WAITING: usize = 4096;

/// Spans of one request to the collector.
const MOST_AT_ONCE: usize = 512;

/// How long a span waits for others to be sent with.
const GATHERING: Duration = Duration::from_secs(1);

/// A connection that was idle for this long is closed: many servers close it after five seconds, and a request on it would be lost.
const IDLE_CONNECTION: Duration = Duration::from_secs(4);

/// Bytes of an error's body that are read.
const LONGEST_ERROR: usize = 64 << 10;

/// The longest a collector may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The same for the last spans: the end of the program should not take long.
const LAST_PATIENCE: Duration = Duration::from_secs(2);

/// Sends finished spans to a collector. Stops when it is dropped; [`Self::close`] sends what is left.
pub struct TraceExporter {
    tracer: Tracer,
    stop: DropGuard,
    sending: TaskTracker,
}

impl TraceExporter {
    /// Sends to the collector at `address` from now on; nowhere without one.
    pub fn open(address: Option<&str>) -> Self {
        let exporter = TraceExporter {
            tracer: Tracer::default(),
            stop: CancellationToken::new().drop_guard(),
            sending: TaskTracker::new(),
        };
        let Some(address) = address else { return exporter };
        // Many write the whole path, as other programs want it.
        let host = address.trim_end_matches('/').trim_end_matches(PATH);
        match Collector::new(host) {
            Ok(collector) => exporter.begin(collector),
            Err(error) => {
                tracing::warn!(%error, "no traces are sent");
                exporter
            }
        }
    }

    fn begin(self, collector: Collector) -> Self {
        let (sender, receiver) = mpsc::channel(MOST_WAITING);
        let queue = Arc::new(SpanQueue { sender, dropped: AtomicU64::new(0) });
        let sender = SpanSender {
            collector,
            receiver,
            queue: Arc::clone(&queue),
            stop: self.stop.token().clone(),
            is_failing: false,
        };
        self.sending.spawn(sender.run());
        TraceExporter { tracer: Tracer::through(queue), ..self }
    }

    pub fn tracer(&self) -> &Tracer {
        &self.tracer
    }

    /// Sends what is left, within a moment.
    pub async fn close(self) {
        drop(self.stop);
        self.sending.close();
        self.sending.wait().await;
    }
}

/// The task that sends.
struct SpanSender {
    collector: Collector,
    receiver: mpsc::Receiver<FinishedSpan>,
    queue: Arc<SpanQueue>,
    stop: CancellationToken,
    /// Whether the last attempt failed, so that a missing collector is logged once.
    is_failing: bool,
}

impl SpanSender {
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
    async fn gather(&mut self, batch: &mut Vec<FinishedSpan>) {
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
    async fn send(&mut self, batch: &mut Vec<FinishedSpan>) {
        if batch.is_empty() {
            return;
        }
        let sent = tokio::time::timeout(PATIENCE, self.collector.post(otlp::body(batch))).await;
        match sent.unwrap_or(Err(CollectorError::Timeout { after: PATIENCE })) {
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
}

/// Why spans do not reach the collector.
#[derive(Debug, Error)]
enum CollectorError {
    #[error("the trace collector is not set up: {reason}")]
    NotConfigured { reason: String },
    #[error("cannot reach the trace collector at {address}: {reason}")]
    Unreachable { address: String, reason: String },
    #[error("the trace collector did not answer within {} s", after.as_secs_f32())]
    Timeout { after: Duration },
    #[error("the trace collector answered {status}: {message}")]
    Refused { status: u16, message: String },
    #[error("the trace collector broke off its answer: {reason}")]
    Interrupted { reason: String },
}

/// Where spans are sent.
struct Collector {
    client: Client,
    host: String,
}

impl Collector {
    fn new(host: &str) -> Result<Self, CollectorError> {
        let not_configured = |reason: String| CollectorError::NotConfigured { reason };
        let url = Url::parse(host)
            .map_err(|error| not_configured(format!("'{host}' is not a valid URL ({error})")))?;
        let options = HttpClientOptions {
            connect_timeout: DEFAULT_CONNECT_TIMEOUT.min(PATIENCE),
            read_timeout: Some(PATIENCE),
            pool_idle_timeout: IDLE_CONNECTION,
            proxy: ProxyUse::towards(&url),
            ..HttpClientOptions::default()
        };
        let client = http_client(options).map_err(|error| not_configured(error.to_string()))?;
        Ok(Collector { client, host: host.to_owned() })
    }

    async fn post(&self, body: Vec<u8>) -> Result<(), CollectorError> {
        let request = self
            .client
            .post(format!("{}{PATH}", self.host))
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .body(body);
        let mut answer = request.send().await.map_err(|error| self.failure(error))?;
        if !answer.status().is_success() {
            return Err(refusal(answer).await);
        }
        // Read to its end, the connection serves again.
        while answer.chunk().await.map_err(|error| self.failure(error))?.is_some() {}
        Ok(())
    }

    fn failure(&self, error: reqwest::Error) -> CollectorError {
        let reason = root_cause(&error);
        match error {
            error if error.is_timeout() => CollectorError::Timeout { after: PATIENCE },
            error if error.is_connect() => CollectorError::Unreachable { address: self.host.clone(), reason },
            _ => CollectorError::Interrupted { reason },
        }
    }
}

/// The error for an answer that is none, in the collector's own words where it has some.
async fn refusal(mut answer: Response) -> CollectorError {
    let status = answer.status();
    let mut body = Vec::new();
    // An error whose body cannot be read is still an error.
    while body.len() < LONGEST_ERROR
        && let Ok(Some(piece)) = answer.chunk().await
    {
        body.extend_from_slice(&piece);
    }
    let told = serde_json::from_slice::<Value>(&body).ok();
    let message = told.as_ref().and_then(|told| told["message"].as_str());
    let message = message.or(status.canonical_reason()).unwrap_or("an error").to_owned();
    CollectorError::Refused { status: status.as_u16(), message }
}

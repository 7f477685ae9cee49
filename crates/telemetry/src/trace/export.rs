//! Sends spans to a collector, in batches and from its own task. A slow or missing collector loses spans, and never delays an
//! answer.

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

const PATH: &str = "/v1/traces";

/// Spans that may wait; more are dropped.
const QUEUE_CAPACITY: usize = 4096;

const BATCH: usize = 512;

/// How long a span waits for others.
const GATHER: Duration = Duration::from_secs(1);

/// An idle connection is closed after this time. Many servers close it after five seconds, and a request on it would be lost.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);

/// Bytes of an error body that are read.
const MAX_ERROR_BYTES: usize = 64 << 10;

/// The longest wait for the collector.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The same for the last spans, so that the program ends soon.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Sends finished spans. Stops when dropped; [`Self::close`] sends the rest first.
pub struct TraceExporter {
    tracer: Tracer,
    stop: DropGuard,
    sending: TaskTracker,
}

impl TraceExporter {
    /// Sends to the collector at `address`, if there is one.
    pub fn open(address: Option<&str>) -> Self {
        let exporter = TraceExporter {
            tracer: Tracer::default(),
            stop: CancellationToken::new().drop_guard(),
            sending: TaskTracker::new(),
        };
        let Some(address) = address else { return exporter };
        // Other programs need the whole path, so it may be present.
        let host = address.trim_end_matches('/').trim_end_matches(PATH);
        match Collector::new(host) {
            Ok(collector) => exporter.begin(collector),
            Err(error) => {
                tracing::warn!(%error, "traces are not sent. Correct [telemetry] otlp_endpoint");
                exporter
            }
        }
    }

    fn begin(self, collector: Collector) -> Self {
        let (sender, receiver) = mpsc::channel(QUEUE_CAPACITY);
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

    /// Sends the remaining spans, within the timeout.
    pub async fn close(self) {
        drop(self.stop);
        self.sending.close();
        self.sending.wait().await;
    }
}

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
            tokio::time::sleep(CLOSE_TIMEOUT).await;
        };
        tokio::select! {
            () = self.send_all() => {}
            // The remaining spans are lost.
            () = given_up => {}
        }
    }

    /// Sends until it is stopped and the queue is empty.
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

    /// Waits for a span, and briefly for others. After a stop it does not wait.
    async fn gather(&mut self, batch: &mut Vec<FinishedSpan>) {
        let (receiver, stop) = (&mut self.receiver, &self.stop);
        let filling = async {
            receiver.recv_many(batch, BATCH).await;
            let full = async {
                while batch.len() < BATCH {
                    receiver.recv_many(batch, BATCH - batch.len()).await;
                }
            };
            let _ = tokio::time::timeout(GATHER, full).await;
        };
        if stop.run_until_cancelled(filling).await.is_none() {
            while batch.len() < BATCH
                && let Ok(next) = receiver.try_recv()
            {
                batch.push(next);
            }
        }
    }

    /// Sends and empties the batch. A failed batch is dropped.
    async fn send(&mut self, batch: &mut Vec<FinishedSpan>) {
        if batch.is_empty() {
            return;
        }
        let sent = tokio::time::timeout(TIMEOUT, self.collector.post(otlp::body(batch))).await;
        match sent.unwrap_or(Err(CollectorError::Timeout { after: TIMEOUT })) {
            Ok(()) if self.is_failing => tracing::info!("the trace collector answers again"),
            Ok(()) => {}
            Err(error) => {
                self.queue.dropped.fetch_add(batch.len() as u64, Ordering::Relaxed);
                if !self.is_failing {
                    tracing::warn!(
                        %error,
                        "traces are dropped until the collector answers. Check that it runs, and [telemetry] \
                         otlp_endpoint"
                    );
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
    #[error("the trace collector is not valid: {reason}")]
    NotConfigured { reason: String },
    #[error("cannot reach the trace collector at {address}: {reason}")]
    Unreachable { address: String, reason: String },
    #[error("the trace collector did not answer within {} s", after.as_secs_f32())]
    Timeout { after: Duration },
    #[error("the trace collector answered {status}: {message}")]
    Refused { status: u16, message: String },
    #[error("the answer of the trace collector is incomplete: {reason}")]
    Interrupted { reason: String },
}

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
            connect_timeout: DEFAULT_CONNECT_TIMEOUT.min(TIMEOUT),
            read_timeout: Some(TIMEOUT),
            pool_idle_timeout: IDLE_TIMEOUT,
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
        // Read completely, so that the connection can be reused.
        while answer.chunk().await.map_err(|error| self.failure(error))?.is_some() {}
        Ok(())
    }

    fn failure(&self, error: reqwest::Error) -> CollectorError {
        let reason = root_cause(&error);
        match error {
            error if error.is_timeout() => CollectorError::Timeout { after: TIMEOUT },
            error if error.is_connect() => CollectorError::Unreachable { address: self.host.clone(), reason },
            _ => CollectorError::Interrupted { reason },
        }
    }
}

/// The error of a failed request, with the text of the collector if there is one.
async fn refusal(mut answer: Response) -> CollectorError {
    let status = answer.status();
    let mut body = Vec::new();
    // The body is optional.
    while body.len() < MAX_ERROR_BYTES
        && let Ok(Some(piece)) = answer.chunk().await
    {
        body.extend_from_slice(&piece);
    }
    let told = serde_json::from_slice::<Value>(&body).ok();
    let message = told.as_ref().and_then(|told| told["message"].as_str());
    let message = message.or(status.canonical_reason()).unwrap_or("an error").to_owned();
    CollectorError::Refused { status: status.as_u16(), message }
}

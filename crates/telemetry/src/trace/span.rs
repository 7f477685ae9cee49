//! Spans. Without a collector, they record nothing and cost nothing.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use hob_core::{FinishReason, TraceParent};
use tokio::sync::mpsc;

/// The side of a request. The numbers are those of OpenTelemetry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    Internal = 1,
    Server = 2,
    Client = 3,
    Consumer = 5,
}

/// Names come from callers and models, and spans wait in memory.
const MAX_TEXT_BYTES: usize = 256;

fn cut(text: &str) -> String {
    text.chars().take(MAX_TEXT_BYTES).collect()
}

#[derive(Debug, Clone, PartialEq)]
pub enum AttributeValue {
    Text(String),
    Texts(Vec<String>),
    Number(u64),
}

impl From<&str> for AttributeValue {
    fn from(text: &str) -> Self {
        AttributeValue::Text(cut(text))
    }
}

impl From<&FinishReason> for AttributeValue {
    /// A list, because there is one for each answer.
    fn from(reason: &FinishReason) -> Self {
        AttributeValue::Texts(vec![cut(reason.recorded())])
    }
}

impl From<u64> for AttributeValue {
    fn from(number: u64) -> Self {
        AttributeValue::Number(number)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct FinishedSpan {
    pub trace_parent: TraceParent,
    pub parent: Option<u64>,
    pub name: String,
    pub kind: SpanKind,
    pub began: SystemTime,
    pub took: Duration,
    pub attributes: Vec<(&'static str, AttributeValue)>,
    pub failed: bool,
}

/// Starts spans. Cheap to clone; the default sends nothing.
#[derive(Clone, Default)]
pub struct Tracer {
    queue: Option<Arc<SpanQueue>>,
}

pub(super) struct SpanQueue {
    pub(super) sender: mpsc::Sender<FinishedSpan>,
    /// Spans that could not be queued or sent.
    pub(super) dropped: AtomicU64,
}

impl Tracer {
    pub(super) fn through(queue: Arc<SpanQueue>) -> Self {
        Tracer { queue: Some(queue) }
    }

    /// The number of lost spans.
    pub fn dropped(&self) -> u64 {
        self.queue.as_ref().map_or(0, |queue| queue.dropped.load(Ordering::Relaxed))
    }

    /// Whether spans are sent.
    pub fn is_enabled(&self) -> bool {
        self.queue.is_some()
    }

    /// Starts a span, in a new trace if it has no parent.
    pub fn start(&self, parent: Option<TraceParent>, kind: SpanKind, name: impl FnOnce() -> String) -> Span {
        let Some(queue) = &self.queue else { return Span(None) };
        let (trace, sampled) =
            parent.map_or_else(|| (fastrand::u128(1..), true), |parent| (parent.trace, parent.sampled));
        let finished = FinishedSpan {
            trace_parent: TraceParent { trace, span: fastrand::u64(1..), sampled },
            parent: parent.map(|parent| parent.span),
            name: cut(&name()),
            kind,
            began: SystemTime::now(),
            took: Duration::ZERO,
            attributes: Vec::new(),
            failed: false,
        };
        Span(Some(Box::new(OpenSpan { queue: Arc::clone(queue), clock: Instant::now(), finished })))
    }
}

/// An open span. If dropped before its end, its work was cancelled.
pub struct Span(Option<Box<OpenSpan>>);

struct OpenSpan {
    queue: Arc<SpanQueue>,
    clock: Instant,
    finished: FinishedSpan,
}

impl Span {
    /// The parent for its parts; `None` if it is disabled or ended.
    pub fn trace_parent(&self) -> Option<TraceParent> {
        self.0.as_ref().map(|open| open.finished.trace_parent)
    }

    pub fn rename(&mut self, name: impl FnOnce() -> String) {
        if let Some(open) = &mut self.0 {
            open.finished.name = cut(&name());
        }
    }

    /// Sets an attribute.
    pub fn set(&mut self, key: &'static str, value: impl Into<AttributeValue>) {
        if let Some(open) = &mut self.0 {
            let attributes = &mut open.finished.attributes;
            attributes.retain(|(known, _)| *known != key);
            attributes.push((key, value.into()));
        }
    }

    /// Marks the span as failed.
    pub fn fail(&mut self, kind: impl Into<Cow<'static, str>>) {
        if let Some(open) = &mut self.0 {
            open.finished.failed = true;
            open.finished.attributes.push(("error.type", AttributeValue::Text(kind.into().into_owned())));
        }
    }

    /// Ends the span.
    pub fn end(&mut self) {
        let Some(open) = self.0.take() else { return };
        let OpenSpan { queue, clock, mut finished } = *open;
        if !finished.trace_parent.sampled {
            return;
        }
        finished.took = clock.elapsed();
        if queue.sender.try_send(finished).is_err() {
            queue.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        self.fail("cancelled");
        self.end();
    }
}

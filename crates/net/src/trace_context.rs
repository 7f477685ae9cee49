//! The trace context of outgoing requests. The code that traces sets it, and HTTP clients send it in the header `traceparent`.

use std::future::Future;

use hob_core::TraceParent;
use http::header::{HeaderName, HeaderValue};

pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

tokio::task_local! {
    static PARENT: TraceParent;
}

/// Runs the work as part of `parent`; without one, as part of the current trace.
pub async fn within<F: Future>(parent: Option<TraceParent>, work: F) -> F::Output {
    match parent {
        Some(parent) => PARENT.scope(parent, work).await,
        None => work.await,
    }
}

/// The trace of the current task.
pub fn current() -> Option<TraceParent> {
    PARENT.try_with(|parent| *parent).ok()
}

/// The current trace as a header value.
pub fn header() -> Option<HeaderValue> {
    HeaderValue::try_from(current()?.to_string()).ok()
}

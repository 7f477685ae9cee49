//! The trace that outgoing requests belong to. The code that traces sets it around the work, and HTTP clients send it in the
//! header `traceparent`.

use std::future::Future;

use hob_core::TraceParent;
use http::header::{HeaderName, HeaderValue};

/// The header that carries the trace.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

tokio::task_local! {
    static PARENT: TraceParent;
}

/// Does the work as part of `parent`; without one, as part of the trace that it belongs to already.
pub async fn within<F: Future>(parent: Option<TraceParent>, work: F) -> F::Output {
    match parent {
        Some(parent) => PARENT.scope(parent, work).await,
        None => work.await,
    }
}

/// The trace that the current task belongs to.
pub fn current() -> Option<TraceParent> {
    PARENT.try_with(|parent| *parent).ok()
}

/// The same as the value of the header.
pub fn header() -> Option<HeaderValue> {
    HeaderValue::try_from(current()?.to_string()).ok()
}

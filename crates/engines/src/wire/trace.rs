//! The trace that requests to an engine belong to. Set around the work by whoever traces it, and told to the engine in the
//! header `traceparent`; the engines of this crate know nothing of it.

use std::future::Future;

use hob_core::TraceParent;
use reqwest::header::{HeaderName, HeaderValue};

pub(super) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

tokio::task_local! {
    static PARENT: TraceParent;
}

/// Does the work as part of `parent`; without one, as part of whatever it belongs to already.
pub async fn within<F: Future>(parent: Option<TraceParent>, work: F) -> F::Output {
    match parent {
        Some(parent) => PARENT.scope(parent, work).await,
        None => work.await,
    }
}

/// What the work under way is a part of.
pub fn current() -> Option<TraceParent> {
    PARENT.try_with(|parent| *parent).ok()
}

/// The same as the header that tells an engine.
pub(super) fn header() -> Option<HeaderValue> {
    HeaderValue::try_from(current()?.to_string()).ok()
}

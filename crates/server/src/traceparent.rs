//! The trace that a request belongs to, from its header `traceparent`.

use axum::http::HeaderMap;
use hob_core::TraceParent;

/// `None` if the header is missing or malformed: a trace must not cost an answer.
pub(crate) fn trace_parent(headers: &HeaderMap) -> Option<TraceParent> {
    TraceParent::parse(headers.get("traceparent")?.to_str().ok()?)
}

//! Which trace a request is a part of, as its sender tells in the header `traceparent`.

use axum::http::HeaderMap;
use hob_core::TraceParent;

/// `None` when nothing was told, and when that cannot be read: a trace must never cost an answer.
pub(crate) fn trace_parent(headers: &HeaderMap) -> Option<TraceParent> {
    TraceParent::parse(headers.get("traceparent")?.to_str().ok()?)
}

//! What is known of a request besides what it says. Handlers find it in the request's extensions.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::Extensions;

use crate::caller::Visitor;
use crate::connection::ConnectionState;
use crate::limits::peer_share::PeerKey;
use crate::request_id::RequestId;

/// One value for all of it, so that a request pays for one entry.
#[derive(Debug, Clone)]
pub(crate) struct RequestContext {
    pub(crate) id: RequestId,
    pub(crate) peer: IpAddr,
    /// As what the gate has let the request in.
    pub(crate) visitor: Visitor,
    /// Whether the gate asked for a key; then everybody inside has shown it.
    pub(crate) is_keyed: bool,
    pub(crate) connection: Arc<ConnectionState>,
}

impl RequestContext {
    pub(crate) fn of(extensions: &Extensions) -> Option<&Self> {
        extensions.get()
    }

    /// Whose share of the server's room the request takes.
    pub(crate) fn peer_key(extensions: &Extensions) -> Option<PeerKey> {
        PeerKey::of(Self::of(extensions)?.peer)
    }

    pub(crate) fn connection(extensions: &Extensions) -> Arc<ConnectionState> {
        Self::of(extensions).map(|context| Arc::clone(&context.connection)).unwrap_or_default()
    }

    /// The request's name, for the trace.
    pub(crate) fn request_id(extensions: &Extensions) -> Option<Arc<str>> {
        Some(Self::of(extensions)?.id.as_str().into())
    }
}

//! What the server knows of a request besides its head and body. Handlers find it in the request's extensions.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::Extensions;
use hob_core::CallerRole;

use crate::caller::{RequestOrigin, role_of};
use crate::connection::ConnectionState;
use crate::limits::peer_share::PeerKey;
use crate::request_id::RequestId;

/// One value for all of it, so that a request needs one entry.
#[derive(Debug, Clone)]
pub(crate) struct RequestContext {
    pub(crate) id: RequestId,
    pub(crate) peer: IpAddr,
    pub(crate) origin: RequestOrigin,
    /// Whether the guard has checked a key.
    pub(crate) is_keyed: bool,
    pub(crate) connection: Arc<ConnectionState>,
}

impl RequestContext {
    pub(crate) fn of(extensions: &Extensions) -> Option<&Self> {
        extensions.get()
    }

    /// Who sent the request. A request without a context is a stranger's.
    pub(crate) fn role(extensions: &Extensions) -> CallerRole {
        Self::of(extensions)
            .map_or(CallerRole::Stranger, |context| role_of(context.peer, context.origin, context.is_keyed))
    }

    pub(crate) fn is_owner(extensions: &Extensions) -> bool {
        Self::role(extensions) == CallerRole::Owner
    }

    /// The peer whose share of a limit the request uses; `None` for loopback.
    pub(crate) fn peer_key(extensions: &Extensions) -> Option<PeerKey> {
        PeerKey::of(Self::of(extensions)?.peer)
    }

    pub(crate) fn connection(extensions: &Extensions) -> Arc<ConnectionState> {
        Self::of(extensions).map(|context| Arc::clone(&context.connection)).unwrap_or_default()
    }

    /// The request's id, for the trace.
    pub(crate) fn request_id(extensions: &Extensions) -> Option<Arc<str>> {
        Some(Self::of(extensions)?.id.as_str().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_without_a_context_is_a_strangers() {
        assert_eq!(RequestContext::role(&Extensions::new()), CallerRole::Stranger);
    }
}

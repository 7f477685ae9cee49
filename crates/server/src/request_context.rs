//! What the server knows of a request besides its head and body. Handlers find it in the request's extensions.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::Extensions;
use hob_core::{CallTally, CallerRights, CallerRole, Permit};
use hob_keys::{ActiveKey, AuditActor};

use crate::caller_role::{Proof, RequestOrigin, is_local, role_of};
use crate::connection::ConnectionState;
use crate::error::{ApiError, ApiResult};
use crate::limits::peer_share::PeerKey;
use crate::request_id::RequestId;

/// One value for all of it, so that a request needs one entry.
#[derive(Debug, Clone)]
pub(crate) struct RequestContext {
    pub(crate) id: RequestId,
    pub(crate) peer: IpAddr,
    pub(crate) origin: RequestOrigin,
    /// The key that the guard has checked, if any.
    pub(crate) proof: Proof,
    pub(crate) connection: Arc<ConnectionState>,
    /// Counts what the request uses; `None` without an access log.
    pub(crate) tally: Option<Arc<CallTally>>,
}

impl RequestContext {
    pub(crate) fn of(extensions: &Extensions) -> Option<&Self> {
        extensions.get()
    }

    /// Who sent the request. A request without a context is a stranger's.
    pub(crate) fn role(extensions: &Extensions) -> CallerRole {
        Self::of(extensions)
            .map_or(CallerRole::Stranger, |context| role_of(context.peer, context.origin, &context.proof))
    }

    /// The named key of the request.
    pub(crate) fn key(extensions: &Extensions) -> Option<&Arc<ActiveKey>> {
        match Self::of(extensions)?.proof {
            Proof::NamedKey(ref key) => Some(key),
            Proof::OwnerKey | Proof::None => None,
        }
    }

    /// What the caller may use.
    pub(crate) fn rights(extensions: &Extensions) -> CallerRights {
        let key = Self::key(extensions).map(|key| Arc::clone(&key.grant));
        CallerRights { role: Self::role(extensions), key }
    }

    /// What an agent may use on the caller's behalf.
    pub(crate) fn permit(extensions: &Extensions) -> Permit {
        match Self::key(extensions) {
            Some(key) => key.grant.permit(),
            None => Permit::up_to(Self::role(extensions).reach()),
        }
    }

    /// Who makes a change, for the audit log.
    pub(crate) fn actor(extensions: &Extensions) -> AuditActor {
        let name = Self::key(extensions).map_or("owner", |key| key.key.name.as_str()).to_owned();
        let origin = Self::of(extensions).map_or_else(String::new, |context| context.peer.to_string());
        AuditActor { name, origin }
    }

    pub(crate) fn is_owner(extensions: &Extensions) -> bool {
        Self::role(extensions) == CallerRole::Owner
    }

    /// Refuses all callers but the owner.
    pub(crate) fn check_owner(extensions: &Extensions, path: &str) -> ApiResult<()> {
        if Self::is_owner(extensions) { Ok(()) } else { Err(ApiError::owner_only(path)) }
    }

    /// Whether the sender is a program on this machine, with a key or without.
    pub(crate) fn is_on_this_machine(extensions: &Extensions) -> bool {
        Self::of(extensions).is_some_and(|context| is_local(context.peer, context.origin))
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
        Some(Self::of(extensions)?.id.shared())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_without_a_context_is_a_strangers() {
        assert_eq!(RequestContext::role(&Extensions::new()), CallerRole::Stranger);
        assert!(!RequestContext::is_on_this_machine(&Extensions::new()));
    }
}

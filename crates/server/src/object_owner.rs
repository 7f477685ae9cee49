//! To whom stored objects, such as responses, conversations and chats, belong.

use axum::http::Extensions;
use hob_conversations::ResponseOwner;
use hob_core::CallerRole;

use crate::request_context::RequestContext;

/// The caller that an object belongs to. A member has its own. Strangers are distinguished by their address; those behind a proxy
/// on this machine look the same.
pub(crate) fn owner_of(extensions: &Extensions) -> ResponseOwner {
    if let Some(key) = RequestContext::key(extensions)
        && key.grant.role == CallerRole::Member
    {
        return ResponseOwner::member(&key.key.id);
    }
    match (RequestContext::role(extensions), RequestContext::peer_key(extensions)) {
        (CallerRole::Owner, _) => ResponseOwner::owner(),
        (CallerRole::Member | CallerRole::Stranger | CallerRole::ChannelSender, Some(peer)) => {
            ResponseOwner::stranger(&peer.to_string())
        }
        (CallerRole::Member | CallerRole::Stranger | CallerRole::ChannelSender, None) => {
            ResponseOwner::stranger("forwarded")
        }
    }
}

//! How far a caller is trusted: what an agent may do on its behalf.
//!
//! Anybody on the network may ask, so a stranger's words move only tools that compute. Who sits at this machine, or knows the
//! key, may have everything done. A web page that nobody named is a stranger even in the owner's own browser, and so is whatever
//! comes through a forwarder: it makes others look like this machine.

use axum::http::Extensions;
use hob_core::CallerRole;

use crate::request_context::RequestContext;

/// As what the gate lets a request in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Visitor {
    /// Sent by a program, by a page of ours, or by one that the owner named.
    Expected,
    /// Sent by a page that nobody named, where `cors_origins` has `*`.
    AnyPage,
    /// Passed on by a proxy or a tunnel, or sent to a name that is not this machine's. Whose request it is cannot be known.
    Forwarded,
}

/// The rule.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trust;

impl Trust {
    /// Whether the caller is the owner of the house, as far as we can tell.
    pub(crate) fn is_owner(self, extensions: &Extensions) -> bool {
        RequestContext::of(extensions).is_some_and(|context| {
            context.is_keyed
                || (context.peer.to_canonical().is_loopback() && context.visitor == Visitor::Expected)
        })
    }

    /// Who sent the request.
    pub(crate) fn role(self, extensions: &Extensions) -> CallerRole {
        if self.is_owner(extensions) { CallerRole::Owner } else { CallerRole::Stranger }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderMap;
    use hob_core::Reach;

    use super::*;
    use crate::request_id::RequestId;

    fn reach(is_keyed: bool, peer: &str, visitor: Visitor) -> Reach {
        let mut extensions = Extensions::new();
        let id = RequestId::of(&HeaderMap::new());
        let peer = peer.parse().unwrap();
        extensions.insert(RequestContext { id, peer, visitor, is_keyed, connection: Default::default() });
        Trust.role(&extensions).reach()
    }

    #[test]
    fn a_page_that_nobody_named_and_what_was_forwarded_are_strangers_without_the_key() {
        for visitor in [Visitor::AnyPage, Visitor::Forwarded] {
            assert_eq!(reach(false, "127.0.0.1", visitor), Reach::Pure);
            assert_eq!(reach(true, "127.0.0.1", visitor), Reach::Act);
        }
    }

    #[test]
    fn strangers_only_compute_and_the_owner_may_act() {
        for here in ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"] {
            assert_eq!(reach(false, here, Visitor::Expected), Reach::Act, "{here}");
        }
        for elsewhere in ["192.168.1.7", "8.8.8.8", "::ffff:10.0.0.1", "fe80::1"] {
            assert_eq!(reach(false, elsewhere, Visitor::Expected), Reach::Pure, "{elsewhere}");
            assert_eq!(reach(true, elsewhere, Visitor::Expected), Reach::Act, "{elsewhere} with a key");
        }
        assert_eq!(Trust.role(&Extensions::new()).reach(), Reach::Pure, "from nowhere");
    }
}

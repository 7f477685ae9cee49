//! How far a caller is trusted: what an agent may do on its behalf.
//!
//! Anybody on the network may ask, so a stranger's words move only tools that compute. Who sits at this machine, or knows the
//! key, may have everything done. A web page that nobody named is a stranger even in the owner's own browser.

use std::net::IpAddr;

use axum::http::Extensions;
use hob_core::CallerRole;
use hob_system::Permit;

/// Where a request came from; the socket puts it there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// As what the gate lets a request in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Visitor {
    /// Sent by a program, by a page of ours, or by one that the owner named.
    Expected,
    /// Sent by a page that nobody named, where `cors_origins` has `*`. Its requests carry this.
    AnyPage,
}

/// The rule.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trust {
    /// Whether the gate asks for a key; then everybody inside has shown it.
    pub(crate) keyed: bool,
}

impl Trust {
    /// Whether the caller is the owner of the house, as far as we can tell.
    pub(crate) fn is_owner(self, extensions: &Extensions) -> bool {
        let is_here = || extensions.get::<Peer>().is_some_and(|Peer(ip)| ip.to_canonical().is_loopback());
        let is_any_page = || extensions.get::<Visitor>() == Some(&Visitor::AnyPage);
        self.keyed || (is_here() && !is_any_page())
    }

    /// Who sent the request.
    pub(crate) fn role(self, extensions: &Extensions) -> CallerRole {
        if self.is_owner(extensions) { CallerRole::Owner } else { CallerRole::Stranger }
    }

    /// What an agent may use on behalf of whoever sent the request.
    pub(crate) fn permit(self, extensions: &Extensions) -> Permit {
        Permit::up_to(self.role(extensions).reach())
    }
}

#[cfg(test)]
mod tests {
    use hob_core::Reach;

    use super::*;

    #[test]
    fn a_page_that_nobody_named_is_a_stranger_without_the_key() {
        let mut extensions = Extensions::new();
        extensions.insert(Peer("127.0.0.1".parse().unwrap()));
        extensions.insert(Visitor::AnyPage);
        assert_eq!(Trust { keyed: false }.permit(&extensions).most, Reach::Pure);
        assert_eq!(Trust { keyed: true }.permit(&extensions).most, Reach::Act);
    }

    fn reach(keyed: bool, peer: &str) -> Reach {
        let mut extensions = Extensions::new();
        extensions.insert(Peer(peer.parse().unwrap()));
        Trust { keyed }.permit(&extensions).most
    }

    #[test]
    fn strangers_only_compute_and_the_owner_may_act() {
        for here in ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"] {
            assert_eq!(reach(false, here), Reach::Act, "{here}");
        }
        for elsewhere in ["192.168.1.7", "8.8.8.8", "::ffff:10.0.0.1", "fe80::1"] {
            assert_eq!(reach(false, elsewhere), Reach::Pure, "{elsewhere}");
            assert_eq!(reach(true, elsewhere), Reach::Act, "{elsewhere} with a key");
        }
        assert_eq!(Trust { keyed: false }.permit(&Extensions::new()).most, Reach::Pure, "from nowhere");
    }
}

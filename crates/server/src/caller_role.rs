//! Who sent a request, and so what an agent can do on its behalf.
//!
//! Anyone on the network can ask, so a stranger's request can use only tools that compute. The owner is a program on this
//! machine, or a caller with the owner's key. A member has a named key, which says what it may use. A web page that the configuration
//! does not list is a stranger, also in the owner's own browser. A forwarded request is a stranger's too: it comes from loopback although
//! its sender is elsewhere.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use hob_core::CallerRole;
use hob_keys::ActiveKey;

/// How a request reached this server, as far as the guard knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestOrigin {
    /// From a program, from a page of this server, or from a page in `cors_origins`.
    Direct,
    /// From a page that is not in `cors_origins`, where that list has `*`.
    UnlistedPage,
    /// Through a proxy or a tunnel, or under a host name that is not this machine's. The sender is unknown.
    Forwarded,
}

/// How a request proved who sent it.
#[derive(Clone)]
pub(crate) enum Proof {
    /// Not at all.
    None,
    /// With `[server] api_key`.
    OwnerKey,
    /// With a named key.
    NamedKey(Arc<ActiveKey>),
}

impl fmt::Debug for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Proof::None => "None",
            Proof::OwnerKey => "OwnerKey",
            Proof::NamedKey(key) => key.key.name.as_str(),
        })
    }
}

/// The role of a caller.
pub(crate) fn role_of(peer: IpAddr, origin: RequestOrigin, proof: &Proof) -> CallerRole {
    match proof {
        Proof::NamedKey(key) => key.grant.role,
        Proof::OwnerKey => CallerRole::Owner,
        Proof::None if is_local(peer, origin) => CallerRole::Owner,
        Proof::None => CallerRole::Stranger,
    }
}

/// Whether the sender is a program on this machine.
pub(crate) fn is_local(peer: IpAddr, origin: RequestOrigin) -> bool {
    peer.to_canonical().is_loopback() && origin == RequestOrigin::Direct
}

#[cfg(test)]
mod tests {
    use hob_core::Reach;

    use super::*;

    fn reach(is_keyed: bool, peer: &str, origin: RequestOrigin) -> Reach {
        let proof = if is_keyed { Proof::OwnerKey } else { Proof::None };
        role_of(peer.parse().unwrap(), origin, &proof).reach()
    }

    #[test]
    fn an_unlisted_page_and_a_forwarded_request_are_strangers_without_the_key() {
        for origin in [RequestOrigin::UnlistedPage, RequestOrigin::Forwarded] {
            assert_eq!(reach(false, "127.0.0.1", origin), Reach::Pure);
            assert_eq!(reach(true, "127.0.0.1", origin), Reach::Act);
        }
    }

    #[test]
    fn strangers_only_compute_and_the_owner_may_act() {
        for here in ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"] {
            assert_eq!(reach(false, here, RequestOrigin::Direct), Reach::Act, "{here}");
        }
        for elsewhere in ["192.168.1.7", "8.8.8.8", "::ffff:10.0.0.1", "fe80::1"] {
            assert_eq!(reach(false, elsewhere, RequestOrigin::Direct), Reach::Pure, "{elsewhere}");
            assert_eq!(reach(true, elsewhere, RequestOrigin::Direct), Reach::Act, "{elsewhere} with a key");
        }
    }
}

//! The share of one peer in what all callers share. Loopback has no share and can use everything: it is the owner, or a proxy
//! for many callers.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};

/// One peer can use a quarter of the whole.
pub(crate) const PEER_SHARE_DIVISOR: usize = 4;

/// What counts as one peer: an IPv4 address, or the /64 network of an IPv6 machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum PeerKey {
    V4(Ipv4Addr),
    V6(u64),
}

impl PeerKey {
    /// `None` for loopback.
    pub(crate) fn of(ip: IpAddr) -> Option<Self> {
        match ip.to_canonical() {
            ip if ip.is_loopback() => None,
            IpAddr::V4(ip) => Some(PeerKey::V4(ip)),
            IpAddr::V6(ip) => Some(PeerKey::V6((ip.to_bits() >> 64) as u64)),
        }
    }
}

impl fmt::Display for PeerKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PeerKey::V4(ip) => ip.fmt(formatter),
            PeerKey::V6(network) => write!(formatter, "{network:016x}/64"),
        }
    }
}

/// Counts the connections of each peer: once for a connection, never for a request.
pub(crate) struct ConnectionShares {
    most: usize,
    open: Mutex<HashMap<PeerKey, usize>>,
}

/// A connection that is counted until this is dropped.
pub(crate) struct ConnectionShare(Option<(PeerKey, Arc<ConnectionShares>)>);

impl ConnectionShares {
    /// Takes the number of all connections.
    pub(crate) fn new(max_connections: usize) -> Arc<Self> {
        Arc::new(ConnectionShares {
            most: (max_connections / PEER_SHARE_DIVISOR).max(1),
            open: Mutex::default(),
        })
    }

    /// `None` if the peer has used its share.
    pub(crate) fn acquire(self: &Arc<Self>, ip: IpAddr) -> Option<ConnectionShare> {
        let Some(peer) = PeerKey::of(ip) else { return Some(ConnectionShare(None)) };
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let count = open.entry(peer).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        Some(ConnectionShare(Some((peer, Arc::clone(self)))))
    }
}

impl Drop for ConnectionShare {
    fn drop(&mut self) {
        let Some((peer, shares)) = self.0.take() else { return };
        let mut open = shares.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&peer) {
            *count -= 1;
            if *count == 0 {
                open.remove(&peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_machine_is_one_peer_however_many_addresses_its_network_has() {
        let key = |text| PeerKey::of(ip(text));
        assert_eq!(key("2001:db8::1"), key("2001:db8::ffff:2"));
        assert_ne!(key("2001:db8::1"), key("2001:db8:0:1::1"));
        assert_eq!(key("::ffff:192.0.2.1"), key("192.0.2.1"));
        assert_ne!(key("192.0.2.1"), key("192.0.2.2"));
        let name = |text| key(text).unwrap().to_string();
        assert_eq!([name("192.0.2.1"), name("2001:db8::1")], ["192.0.2.1", "20010db800000000/64"]);
        for here in ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"] {
            assert_eq!(key(here), None, "{here}");
        }
    }

    #[test]
    fn one_peer_has_a_quarter_of_the_connections_and_loopback_has_all() {
        let shares = ConnectionShares::new(8);
        let first = shares.acquire(ip("192.0.2.1")).unwrap();
        let _second = shares.acquire(ip("192.0.2.1")).unwrap();
        assert!(shares.acquire(ip("192.0.2.1")).is_none());
        let _other = shares.acquire(ip("192.0.2.2")).unwrap();
        let _here: Vec<ConnectionShare> = (0..8).map(|_| shares.acquire(ip("127.0.0.1")).unwrap()).collect();
        drop(first);
        let third = shares.acquire(ip("192.0.2.1")).unwrap();
        drop((third, _second, _other));
        assert!(shares.open.lock().unwrap().is_empty(), "nothing is remembered of those who left");
    }
}

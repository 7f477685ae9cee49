//! Which addresses are public. Pure: knows nothing of names, sockets or HTTP.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// IPv4 networks outside the public internet, with the length of the prefix.
const SPECIAL_V4: &[(Ipv4Addr, u32)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8),        // this network
    (Ipv4Addr::new(10, 0, 0, 0), 8),       // private
    (Ipv4Addr::new(100, 64, 0, 0), 10),    // carrier-grade NAT
    (Ipv4Addr::new(127, 0, 0, 0), 8),      // loopback
    (Ipv4Addr::new(168, 63, 129, 16), 32), // Azure's host agent, inside every virtual machine there
    (Ipv4Addr::new(169, 254, 0, 0), 16),   // link-local, with the metadata of most clouds
    (Ipv4Addr::new(172, 16, 0, 0), 12),    // private
    (Ipv4Addr::new(192, 0, 0, 0), 24),     // protocol assignments
    (Ipv4Addr::new(192, 0, 2, 0), 24),     // documentation
    (Ipv4Addr::new(192, 88, 99, 0), 24),   // 6to4 relays
    (Ipv4Addr::new(192, 168, 0, 0), 16),   // private
    (Ipv4Addr::new(198, 18, 0, 0), 15),    // benchmarks
    (Ipv4Addr::new(198, 51, 100, 0), 24),  // documentation
    (Ipv4Addr::new(203, 0, 113, 0), 24),   // documentation
    (Ipv4Addr::new(224, 0, 0, 0), 4),      // multicast
    (Ipv4Addr::new(240, 0, 0, 0), 4),      // reserved, and broadcast
];

/// Global unicast addresses. All others are loopback, local, multicast or unassigned.
const GLOBAL_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// Networks in [`GLOBAL_V6`] that are not public.
const SPECIAL_V6: &[(Ipv6Addr, u32)] = &[
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23), // protocol assignments, with Teredo and ORCHID
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32), // documentation
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16), // 6to4, which hides an IPv4 address
    (Ipv6Addr::new(0x3ffe, 0, 0, 0, 0, 0, 0, 0), 16), // the former 6bone
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20), // documentation
];

/// IPv6 networks whose last 32 bits are an IPv4 address: mapped addresses and NAT64.
const TRANSLATED: &[(Ipv6Addr, u32)] =
    &[(Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96), (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96)];

/// Whether an address belongs to the public internet, in any notation.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !SPECIAL_V4.iter().any(|(network, length)| {
        let mask = u32::MAX << (32 - length);
        address.to_bits() & mask == network.to_bits()
    })
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let is_in = |(network, length): &(Ipv6Addr, u32)| {
        let mask = u128::MAX << (128 - length);
        address.to_bits() & mask == network.to_bits()
    };
    let [.., a, b, c, d] = address.octets();
    let last = Ipv4Addr::new(a, b, c, d);
    if TRANSLATED.iter().any(is_in) {
        return is_public_v4(last);
    }
    // ISATAP embeds an IPv4 address behind any prefix.
    let [.., high, low, _, _] = address.segments();
    let is_isatap = matches!((high, low), (0 | 0x200, 0x5efe));
    is_in(&GLOBAL_V6) && !SPECIAL_V6.iter().any(is_in) && (!is_isatap || is_public_v4(last))
}

/// The addresses that a fetch may connect to.
#[derive(Debug, Clone, Default)]
pub struct AddressPolicy {
    exceptions: Vec<SocketAddr>,
}

impl AddressPolicy {
    /// Public addresses.
    pub fn public_only() -> Self {
        Self::default()
    }

    /// Also permits this address.
    pub fn with_exception(mut self, address: SocketAddr) -> Self {
        self.exceptions.push(address);
        self
    }

    pub fn permits(&self, address: SocketAddr) -> bool {
        is_public(address.ip()) || self.exceptions.contains(&address)
    }

    /// Whether any port of the address is permitted, because a resolver does not know the port.
    pub(super) fn permits_host(&self, address: IpAddr) -> bool {
        is_public(address) || self.exceptions.iter().any(|exception| exception.ip() == address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The edges of every special network, and all the forms in which IPv6 hides an IPv4 address.
    const SPECIAL: &str = "
        0.0.0.0 0.1.2.3 10.0.0.0 10.255.255.255 100.64.0.0 100.100.100.200 100.127.255.255 127.0.0.1
        127.255.255.255 168.63.129.16 169.254.0.0 169.254.169.254 169.254.255.255 172.16.0.0 172.31.255.255
        192.0.0.0 192.0.0.192 192.0.2.1 192.88.99.1 192.168.0.0 192.168.255.255 198.18.0.0 198.19.255.255
        198.51.100.7 203.0.113.9 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 :: ::1 ::127.0.0.1
        ::8.8.8.8 ::ffff:0:8.8.8.8 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::ffff:0.0.0.0
        64:ff9b::127.0.0.1 64:ff9b::192.168.1.1 64:ff9b::a9fe:a9fe 64:ff9b:1::8.8.8.8 64:ff9b:1:2::1
        2002:7f00:1:: 2002:a9fe:a9fe::1 2002:808:808::1 2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2
        2606:4700::5efe:10.0.0.1 2606:4700::200:5efe:192.168.0.1 fc00::1 fd00:ec2::254 fdff:ffff::1 fe80::1
        febf::1 fec0::1 ff02::1 ff0e::1 2001:db8::1 3fff::1 3fff:fff::1 3ffe::1 2001:2::1 2001:10::1
        2001:1ff::1 100::1 5f00::1 4000::1 e000::1";

    /// Addresses right beside special networks, and some well-known ones.
    const ORDINARY: &str = "
        1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.1
        168.63.129.15 168.63.129.17 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.0
        192.0.3.0 192.88.98.255 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 198.51.99.255
        203.0.112.255 203.0.114.0 223.255.255.255 ::ffff:8.8.8.8 64:ff9b::8.8.8.8 2001:200::1
        2001:4860:4860::8888 2001:db7:ffff::1 2003::1 2606:4700::1111 2a00:1450:4001::1 3ffd::1
        2606:4700::5efe:8.8.8.8";

    #[test]
    fn every_private_and_special_address_is_known() {
        for address in SPECIAL.split_whitespace() {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn the_neighbours_of_special_networks_are_public() {
        for address in ORDINARY.split_whitespace() {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn an_exception_is_one_port_of_one_address() {
        let policy = AddressPolicy::public_only().with_exception("127.0.0.1:4000".parse().unwrap());
        for (address, expected) in [
            ("127.0.0.1:4000", true),
            ("127.0.0.1:4001", false),
            ("127.0.0.2:4000", false),
            ("[::ffff:127.0.0.1]:4000", false),
            ("8.8.8.8:4001", true),
        ] {
            assert_eq!(policy.permits(address.parse().unwrap()), expected, "{address}");
        }
    }
}

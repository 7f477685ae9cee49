//! The addresses under which other machines of the network reach this one.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};

use if_addrs::get_if_addrs;

/// IPv4 addresses of this machine that others can use, the one of the default route first. Sends nothing.
pub fn network_addresses() -> Vec<Ipv4Addr> {
    let interfaces = get_if_addrs().unwrap_or_default();
    in_order(interfaces.iter().map(|interface| interface.ip()), default_address())
}

/// The address from which this machine reaches the internet.
fn default_address() -> Option<Ipv4Addr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    // An address for documentation (RFC 5737). Connecting a UDP socket only chooses a route.
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    match socket.local_addr().ok()?.ip() {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    }
}

fn in_order(addresses: impl Iterator<Item = IpAddr>, default: Option<Ipv4Addr>) -> Vec<Ipv4Addr> {
    let usable = |address: IpAddr| match address {
        IpAddr::V4(ip) if !ip.is_loopback() && !ip.is_link_local() && !ip.is_unspecified() => Some(ip),
        _ => None,
    };
    let mut found: Vec<Ipv4Addr> = addresses.filter_map(usable).collect();
    found.sort_unstable();
    found.dedup();
    found.sort_by_key(|address| Some(*address) != default);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_route_comes_first_and_addresses_of_this_machine_alone_are_skipped() {
        let addresses =
            ["172.17.0.1", "127.0.0.1", "192.168.1.7", "169.254.3.4", "fe80::1", "192.168.1.7", "10.0.0.2"];
        let addresses = addresses.into_iter().map(|text| text.parse().unwrap());
        let expected =
            ["192.168.1.7", "10.0.0.2", "172.17.0.1"].map(|text| text.parse::<Ipv4Addr>().unwrap());
        assert_eq!(in_order(addresses, "192.168.1.7".parse().ok()), expected);
    }
}

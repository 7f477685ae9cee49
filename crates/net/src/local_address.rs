//! Addresses of this machine and of Hob's own server. Pure: resolves no name and opens no connection.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};

use url::{Host, Url};

/// The address of Hob's own server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindAddress {
    /// A name or an IP address, without brackets.
    pub host: String,
    pub port: u16,
}

/// Whether an address is a loopback address. Requests to it never use a proxy.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

/// Whether the address of an engine is that of Hob's own server, which listens on `bind`.
pub fn is_own_address(engine_url: &str, bind: &BindAddress) -> bool {
    let Ok(url) = Url::parse(engine_url) else {
        return false;
    };
    if url.port_or_known_default() != Some(bind.port) {
        return false;
    }
    let Some(host) = url.host().map(HostAddress::of_url) else {
        return false;
    };
    match (host, HostAddress::of_text(&bind.host)) {
        (host, own) if host == own => true,
        // Only a server that is bound to one external address leaves the loopback address free. A name can be either.
        (HostAddress::Here, HostAddress::Outside(_)) => false,
        (HostAddress::Here, _) => true,
        _ => false,
    }
}

/// Whether only this machine can use the address. A host name can belong to any machine.
pub fn is_on_this_machine(engine_url: &str) -> bool {
    let url = Url::parse(engine_url).ok();
    url.as_ref().and_then(Url::host).map(HostAddress::of_url) == Some(HostAddress::Here)
}

/// Whether a connection to the address stays on this machine: it is a loopback address, or an IP address that this machine has. A host
/// name can belong to any machine.
pub fn stays_on_this_machine(url: &str) -> bool {
    let url = Url::parse(url).ok();
    match url.as_ref().and_then(Url::host).map(HostAddress::of_url) {
        Some(HostAddress::Here) => true,
        // Only an address of this machine can be bound.
        Some(HostAddress::Outside(ip)) => UdpSocket::bind((ip, 0)).is_ok(),
        Some(HostAddress::Named(_)) | None => false,
    }
}

/// The kind of host in an address.
#[derive(Debug, PartialEq, Eq)]
enum HostAddress {
    /// A loopback address, or the unspecified address, which stands for all addresses of this machine.
    Here,
    Outside(IpAddr),
    Named(String),
}

impl HostAddress {
    fn of_url(host: Host<&str>) -> Self {
        match host {
            Host::Domain(name) => Self::of_text(name),
            Host::Ipv4(ip) => Self::of_ip(ip.into()),
            Host::Ipv6(ip) => Self::of_ip(ip.into()),
        }
    }

    fn of_text(host: &str) -> Self {
        let name = host.trim_matches(['[', ']']).to_ascii_lowercase();
        if let Ok(ip) = name.parse() {
            Self::of_ip(ip)
        } else if name.is_empty() || name == "localhost" || name.ends_with(".localhost") {
            HostAddress::Here
        } else {
            HostAddress::Named(name)
        }
    }

    fn of_ip(ip: IpAddr) -> Self {
        // An IPv4 address written as IPv6 is still that address.
        let ip = match ip {
            IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(ip, |v4: Ipv4Addr| v4.into()),
            IpAddr::V4(_) => ip,
        };
        if ip.is_loopback() || ip.is_unspecified() { HostAddress::Here } else { HostAddress::Outside(ip) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(engine_url: &str, host: &str) -> bool {
        let bind = BindAddress { host: host.into(), port: 8000 };
        is_own_address(engine_url, &bind)
    }

    #[test]
    fn every_way_to_write_our_own_address_is_recognised() {
        for host in ["0.0.0.0", "127.0.0.1", "localhost", "::", "::1", "[::]", ""] {
            for url in [
                "http://localhost:8000",
                "http://LOCALHOST:8000/",
                "http://127.0.0.1:8000",
                "http://127.1.2.3:8000",
                "http://0.0.0.0:8000",
                "http://[::1]:8000",
                "http://[::ffff:127.0.0.1]:8000",
            ] {
                assert!(own(url, host), "{url} on {host}");
            }
        }
        assert!(own("http://192.168.1.5:8000", "192.168.1.5"));
        assert!(own("http://box.lan:8000", "Box.lan"));
        // A machine's own name often means its inner address.
        assert!(own("http://localhost:8000", "box.lan"));
    }

    #[test]
    fn a_connection_to_a_name_or_to_an_address_of_another_machine_leaves_this_one() {
        for url in ["https://localhost:8000", "https://127.0.0.1:8000", "https://[::1]:8000"] {
            assert!(stays_on_this_machine(url), "{url}");
        }
        // The IP addresses are reserved for examples, so no machine has them.
        for url in ["https://box.lan:8000", "https://192.0.2.7:8000", "https://[2001:db8::7]:8000", "", "::x"]
        {
            assert!(!stays_on_this_machine(url), "{url}");
        }
    }

    #[test]
    fn another_address_is_not_hobs_own() {
        assert!(!own("http://localhost:8001", "0.0.0.0"), "another port");
        assert!(!own("http://localhost", "0.0.0.0"), "port 80");
        assert!(!own("http://192.168.1.9:8000", "0.0.0.0"), "another machine");
        assert!(!own("http://localhost:8000", "192.168.1.5"), "we listen outside, it listens inside");
        assert!(!own("http://gpu.lan:8000", "box.lan"), "another name");
        assert!(!own("", "0.0.0.0"), "an engine without an address");
        assert!(!own("::nonsense", "0.0.0.0"), "no URL at all");
    }

    #[test]
    fn a_default_port_counts_as_written() {
        let bind = BindAddress { host: "127.0.0.1".into(), port: 80 };
        assert!(is_own_address("http://localhost", &bind));
    }

    #[test]
    fn this_machine_is_recognised_by_names_and_addresses() {
        for (address, expected) in [
            ("http://localhost:11434", true),
            ("http://ollama.localhost", true),
            ("https://127.0.0.1", true),
            ("ws://127.8.9.1:1/ws", true),
            ("http://[::1]:8000/v1", true),
            ("http://localhost.example.org", false),
            ("http://10.0.0.1", false),
            ("http://[fe80::1]", false),
            ("data:text/plain,127.0.0.1", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(address).unwrap()), expected, "{address}");
        }
    }
}

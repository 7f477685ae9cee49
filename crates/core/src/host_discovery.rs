//! Where the hosts of an engine are listed in DNS, as written in the settings. Plain data: looks nothing up.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// The port of a DNS server if the address has none.
const DNS_PORT: u16 = 53;

/// The longest name that DNS allows.
const MAX_NAME_CHARS: usize = 253;

/// A name in DNS whose records are the hosts of an engine: `dns[+srv][+https]://[SERVER[:PORT]/]NAME[:PORT]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostDiscovery {
    pub name: String,
    pub records: HostRecords,
    /// Whether the hosts are reached with https. Their certificate is then checked for the name that was looked up, or for the target
    /// of the SRV record.
    pub is_encrypted: bool,
    /// The DNS server; `None` for those of the system.
    pub server: Option<SocketAddr>,
}

/// Which records list the hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostRecords {
    /// A and AAAA: every address is a host, at this port.
    Addresses { port: u16 },
    /// SRV: every record is a host, with its own port.
    Services,
}

/// The text does not name hosts in DNS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotDiscovery;

impl FromStr for HostDiscovery {
    type Err = NotDiscovery;

    fn from_str(text: &str) -> Result<Self, NotDiscovery> {
        let (scheme, rest) = text.split_once("://").ok_or(NotDiscovery)?;
        let (is_service, is_encrypted) = match scheme.to_ascii_lowercase().as_str() {
            "dns" => (false, false),
            "dns+https" => (false, true),
            "dns+srv" => (true, false),
            "dns+srv+https" => (true, true),
            _ => return Err(NotDiscovery),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (server, target) = match rest.split_once('/') {
            Some((server, target)) => (Some(dns_server(server).ok_or(NotDiscovery)?), target),
            None => (None, rest),
        };
        let (name, records) = match (is_service, target.rsplit_once(':')) {
            (true, None) => (target, HostRecords::Services),
            (false, Some((name, port))) => {
                let port = port.parse().ok().filter(|port| *port > 0).ok_or(NotDiscovery)?;
                (name, HostRecords::Addresses { port })
            }
            // A service has its ports in its records, and addresses need one.
            (true, Some(_)) | (false, None) => return Err(NotDiscovery),
        };
        let name = name.to_ascii_lowercase();
        match is_name(&name) {
            true => Ok(HostDiscovery { name, records, is_encrypted, server }),
            false => Err(NotDiscovery),
        }
    }
}

impl fmt::Display for HostDiscovery {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let service = if self.records == HostRecords::Services { "+srv" } else { "" };
        let encrypted = if self.is_encrypted { "+https" } else { "" };
        write!(out, "dns{service}{encrypted}://")?;
        if let Some(server) = self.server {
            write!(out, "{server}/")?;
        }
        out.write_str(&self.name)?;
        match self.records {
            HostRecords::Addresses { port } => write!(out, ":{port}"),
            HostRecords::Services => Ok(()),
        }
    }
}

/// The address of a DNS server. A name would need another server to be looked up.
fn dns_server(text: &str) -> Option<SocketAddr> {
    let unbracketed = || text.strip_prefix('[')?.strip_suffix(']')?.parse::<IpAddr>().ok();
    let alone = || text.parse::<IpAddr>().ok().or_else(unbracketed).map(|ip| SocketAddr::new(ip, DNS_PORT));
    text.parse().ok().or_else(alone)
}

/// Whether this is a host or service name, and not an address.
fn is_name(text: &str) -> bool {
    let is_allowed =
        |character: char| character.is_ascii_alphanumeric() || character == '-' || character == '_';
    let is_label = |label: &str| (1..=63).contains(&label.len()) && label.chars().all(is_allowed);
    let text = text.strip_suffix('.').unwrap_or(text);
    text.len() <= MAX_NAME_CHARS && text.split('.').all(is_label) && text.parse::<IpAddr>().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read_and_written_alike() {
        let plain = HostDiscovery {
            name: "vllm.svc".into(),
            records: HostRecords::Addresses { port: 8000 },
            is_encrypted: false,
            server: None,
        };
        let service =
            HostDiscovery { name: "_http._tcp.vllm.svc".into(), records: HostRecords::Services, ..plain };
        let server: SocketAddr = "10.0.0.10:8600".parse().unwrap();
        for (text, expected) in [
            ("dns://vllm.svc:8000", plain.clone()),
            ("dns+https://vllm.svc:8000", HostDiscovery { is_encrypted: true, ..plain.clone() }),
            ("dns+srv://_http._tcp.vllm.svc", service.clone()),
            ("dns+srv+https://_http._tcp.vllm.svc", HostDiscovery { is_encrypted: true, ..service.clone() }),
            ("dns://10.0.0.10:8600/vllm.svc:8000", HostDiscovery { server: Some(server), ..plain }),
            (
                "dns+srv://[::1]:53/_http._tcp.vllm.svc",
                HostDiscovery { server: Some("[::1]:53".parse().unwrap()), ..service },
            ),
        ] {
            assert_eq!(text.parse(), Ok(expected.clone()), "{text}");
            assert_eq!(expected.to_string(), text);
        }
        for (typed, meant) in [
            ("DNS://Vllm.SVC:8000/", "dns://vllm.svc:8000"),
            ("dns://10.0.0.10/vllm:8000", "dns://10.0.0.10:53/vllm:8000"),
            ("dns://[::1]/vllm:8000", "dns://[::1]:53/vllm:8000"),
            ("dns://vllm.svc.cluster.local.:8000", "dns://vllm.svc.cluster.local.:8000"),
        ] {
            assert_eq!(typed.parse::<HostDiscovery>().unwrap().to_string(), meant);
        }
    }

    #[test]
    fn what_names_no_hosts_is_refused() {
        for text in [
            "",
            "vllm.svc:8000",
            "http://vllm.svc:8000",
            "dns://vllm.svc",
            "dns://vllm.svc:0",
            "dns://vllm.svc:65536",
            "dns://:8000",
            "dns://10.0.0.5:8000",
            "dns://[::1]:8000",
            "dns://a..b:8000",
            "dns://a b:8000",
            "dns://user@a:8000",
            "dns://a:8000?x=y",
            "dns://resolver/vllm:8000",
            "dns://10.0.0.1/b/vllm:8000",
            "dns+srv://_http._tcp.vllm:8000",
            "dns+tls://vllm.svc:8000",
        ] {
            assert_eq!(text.parse::<HostDiscovery>(), Err(NotDiscovery), "{text:?}");
        }
        let long = format!("dns://{}:8000", ["a".repeat(63).as_str(); 4].join("."));
        assert_eq!(long.parse::<HostDiscovery>(), Err(NotDiscovery));
    }
}

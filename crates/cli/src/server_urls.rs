//! The URLs under which a server can be called: on this machine, by the name of this machine, by its addresses.

use std::net::{IpAddr, Ipv4Addr};

use hob_config::ServerConfig;
use hob_net::{local_name, machine_name, network_addresses};

use crate::running_server::UrlScheme;

/// What this machine is called, and the addresses under which others reach it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MachineOnNetwork {
    pub name: Option<String>,
    pub addresses: Vec<Ipv4Addr>,
}

impl MachineOnNetwork {
    pub fn detect() -> Self {
        MachineOnNetwork { name: machine_name(), addresses: network_addresses() }
    }
}

/// Who can use a URL, and what it is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrlKind {
    /// Works on this machine only.
    ThisMachine,
    /// The name of this machine, which the server announces.
    MachineName,
    /// An address of this machine.
    Address,
    /// A name from the configuration.
    ConfiguredName,
}

/// A URL of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerUrl {
    pub url: String,
    pub kind: UrlKind,
}

/// The URLs of a server with these settings that listens on `port`.
pub fn server_urls(server: &ServerConfig, port: u16, machine: &MachineOnNetwork) -> Vec<ServerUrl> {
    let scheme = UrlScheme::of(server);
    let entry = |host: &str, kind| ServerUrl { url: scheme.url(host, port), kind };
    let host = server.host.as_str();
    let local = || {
        let name = machine.name.as_deref().filter(|_| server.announce && !machine.addresses.is_empty());
        name.map(|name| entry(&local_name(name), UrlKind::MachineName))
    };
    let mut urls: Vec<ServerUrl> = match host.parse::<IpAddr>().map(|ip| ip.to_canonical()) {
        Ok(ip) if ip.is_loopback() => return vec![entry(host, UrlKind::ThisMachine)],
        Err(_) if host == "localhost" || host.ends_with(".localhost") => {
            return vec![entry(host, UrlKind::ThisMachine)];
        }
        Ok(ip) if ip.is_unspecified() => {
            let addresses = machine.addresses.iter();
            let addresses = addresses.map(|address| entry(&address.to_string(), UrlKind::Address));
            [entry("localhost", UrlKind::ThisMachine)].into_iter().chain(local()).chain(addresses).collect()
        }
        Ok(_) => [entry(host, UrlKind::Address)].into_iter().chain(local()).collect(),
        Err(_) => [entry(host, UrlKind::ConfiguredName)].into_iter().chain(local()).collect(),
    };
    for name in &server.allowed_hosts {
        let configured = entry(name, UrlKind::ConfiguredName);
        if !urls.iter().any(|known| known.url == configured.url) {
            urls.push(configured);
        }
    }
    urls
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> MachineOnNetwork {
        let addresses = ["192.168.1.7", "10.0.0.2"].map(|text| text.parse::<Ipv4Addr>().unwrap());
        MachineOnNetwork { name: Some("ada".into()), addresses: addresses.to_vec() }
    }

    fn shown(server: &ServerConfig, machine: &MachineOnNetwork) -> Vec<String> {
        server_urls(server, 8000, machine).into_iter().map(|found| found.url).collect()
    }

    #[test]
    fn a_server_on_all_addresses_has_one_url_for_each_way_to_it() {
        let server = ServerConfig { allowed_hosts: vec!["hob.lan".into()], ..ServerConfig::default() };
        let found = server_urls(&server, 8000, &machine());
        let found: Vec<(&str, UrlKind)> = found.iter().map(|one| (one.url.as_str(), one.kind)).collect();
        let expected = [
            ("http://localhost:8000", UrlKind::ThisMachine),
            ("http://ada.local:8000", UrlKind::MachineName),
            ("http://192.168.1.7:8000", UrlKind::Address),
            ("http://10.0.0.2:8000", UrlKind::Address),
            ("http://hob.lan:8000", UrlKind::ConfiguredName),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn only_urls_that_work_are_listed() {
        let quiet = ServerConfig { announce: false, ..ServerConfig::default() };
        assert_eq!(
            shown(&quiet, &machine()),
            ["http://localhost:8000", "http://192.168.1.7:8000", "http://10.0.0.2:8000"]
        );
        let offline = MachineOnNetwork { addresses: Vec::new(), ..machine() };
        assert_eq!(shown(&ServerConfig::default(), &offline), ["http://localhost:8000"]);
        for (host, expected) in [
            ("127.0.0.1", vec!["http://127.0.0.1:8000"]),
            ("::1", vec!["http://[::1]:8000"]),
            ("localhost", vec!["http://localhost:8000"]),
            ("10.0.0.2", vec!["http://10.0.0.2:8000", "http://ada.local:8000"]),
            ("box.lan", vec!["http://box.lan:8000", "http://ada.local:8000"]),
        ] {
            let server = ServerConfig { host: host.into(), ..ServerConfig::default() };
            assert_eq!(shown(&server, &machine()), expected, "{host}");
        }
    }
}

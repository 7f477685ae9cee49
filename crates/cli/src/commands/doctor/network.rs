//! The addresses under which other machines reach the server.

use super::described_server::DescribedServer;
use super::report::{CheckStatus, DoctorCheck};
use crate::server_urls::{MachineOnNetwork, UrlKind, server_urls};

const NAME: &str = "network";

/// `None` if no other machine can reach the server.
pub fn check(described: &DescribedServer, machine: &MachineOnNetwork) -> Option<DoctorCheck> {
    let server = &described.config;
    let urls = server_urls(server, server.port, machine);
    let urls: Vec<&str> = urls
        .iter()
        .filter(|found| found.kind != UrlKind::ThisMachine)
        .map(|found| found.url.as_str())
        .collect();
    let message = format!("other machines reach {} at {}", described.name(), urls.join(", "));
    (!urls.is_empty()).then(|| DoctorCheck::new(NAME, CheckStatus::Good, message))
}

#[cfg(test)]
mod tests {
    use hob_config::ServerConfig;

    use super::*;

    fn check(server: &ServerConfig, machine: &MachineOnNetwork) -> Option<DoctorCheck> {
        super::check(&DescribedServer::upcoming(server), machine)
    }

    #[test]
    fn the_addresses_of_a_server_on_the_network_are_listed() {
        let machine = MachineOnNetwork {
            name: Some("ada".into()),
            addresses: vec!["192.168.1.7".parse().expect("an address")],
        };
        let words =
            "other machines reach the next 'hob serve' at http://ada.local:8000, http://192.168.1.7:8000";
        let expected = DoctorCheck::new(NAME, CheckStatus::Good, words);
        assert_eq!(check(&ServerConfig::default(), &machine), Some(expected));
        let inside = ServerConfig { host: "127.0.0.1".into(), ..ServerConfig::default() };
        assert_eq!(check(&inside, &machine), None);
        assert_eq!(check(&ServerConfig::default(), &MachineOnNetwork::default()), None);
    }
}

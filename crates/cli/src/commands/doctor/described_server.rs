//! The server that the report describes: the one of this home that runs, or else the one that the next `hob serve` starts.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use hob_config::ServerConfig;

use crate::running_server::{LocatedServer, known_addresses, reachable};

/// The settings of a server, with the address that it uses.
pub struct DescribedServer {
    pub config: ServerConfig,
    is_running: bool,
}

impl DescribedServer {
    /// The one that the next `hob serve` starts.
    pub fn upcoming(config: &ServerConfig) -> Self {
        DescribedServer { config: config.clone(), is_running: false }
    }

    /// The one that runs. Its options can differ from the configuration.
    pub fn running(config: &ServerConfig, found: &LocatedServer, home: &Path) -> Self {
        let bound = bound_host(found, &known_addresses(home));
        let config = ServerConfig {
            host: bound.unwrap_or_else(|| found.host.clone()),
            port: found.port,
            ..config.clone()
        };
        DescribedServer { config, is_running: true }
    }

    /// What it is called in a sentence.
    pub fn name(&self) -> &'static str {
        if self.is_running { "the running server" } else { "the next 'hob serve'" }
    }

    /// Where it listens.
    pub fn place(&self) -> String {
        let (host, port) = (&self.config.host, self.config.port);
        match (self.is_running, host.parse::<IpAddr>()) {
            (false, _) => host.clone(),
            (true, Ok(ip)) => SocketAddr::new(ip, port).to_string(),
            (true, Err(_)) => format!("{host}:{port}"),
        }
    }
}

/// The address that a server wrote down. It was found where it can be reached from here, which is the same for a server on all
/// addresses and for one on this machine only.
fn bound_host(found: &LocatedServer, known: &[SocketAddr]) -> Option<String> {
    let is_it = |known: &&SocketAddr| {
        known.port() == found.port && reachable(&known.ip().to_string()) == reachable(&found.host)
    };
    known.iter().find(is_it).map(|known| known.ip().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::running_server::ServerProbe;

    #[test]
    fn the_address_that_a_server_wrote_down_says_who_can_reach_it() {
        let found = LocatedServer { host: "0.0.0.0".into(), port: 8000, probe: ServerProbe::NoListener };
        let known = ["127.0.0.1:9000", "127.0.0.1:8000", "0.0.0.0:8000"];
        let known = known.map(|text| text.parse::<SocketAddr>().expect("an address"));
        assert_eq!(bound_host(&found, &known).as_deref(), Some("127.0.0.1"));
        assert_eq!(bound_host(&found, &known[..1]), None);
    }

    #[test]
    fn a_running_server_is_named_with_its_port() {
        let next = DescribedServer::upcoming(&ServerConfig::default());
        assert_eq!((next.name(), next.place().as_str()), ("the next 'hob serve'", "0.0.0.0"));
        let running = DescribedServer { is_running: true, ..next };
        assert_eq!((running.name(), running.place().as_str()), ("the running server", "0.0.0.0:8000"));
    }
}

//! Announces the server to the network, if the settings want it. A server that cannot be announced still serves.

use std::net::SocketAddr;

use hob_config::ServerConfig;
use hob_net::{Announcement, Announcer, machine_name};

use crate::output;

/// Announces a server that listens on `address`.
pub fn announce(server: &ServerConfig, address: SocketAddr) -> Option<Announcer> {
    let machine = machine_name().filter(|_| server.announce)?;
    let version = env!("CARGO_PKG_VERSION");
    let announcement = Announcement { address, machine, is_https: server.tls.is_on(), version };
    match Announcer::start(&announcement) {
        Ok(announcer) => announcer,
        Err(error) => {
            output::warning(format_args!("cannot announce the server on the network: {error}"));
            None
        }
    }
}

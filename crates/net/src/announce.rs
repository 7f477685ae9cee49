//! Announces the server of this machine to its network with multicast DNS (RFC 6762 and 6763): programs that browse for services list it,
//! and `HOSTNAME.local` leads to it. Knows nothing of what the server serves.

use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::time::Duration;

use mdns_sd::{DaemonEvent, IfKind, RRType, Receiver, ServiceDaemon, ServiceInfo};
use thiserror::Error;
use tokio::task::JoinHandle;

use crate::interfaces::network_addresses;
use crate::machine_name::local_name;

/// The type of a service that a browser opens. The subtype is for programs that look for Hob alone.
const HTTP: &str = "_hob._sub._http._tcp.local.";
const HTTPS: &str = "_hob._sub._https._tcp.local.";

/// The longest name of a service in bytes (RFC 6763, section 4.1.1).
const LONGEST_NAME: usize = 63;

/// How long the first announcement may take. The library first asks for about a second whether the names are taken.
const ANNOUNCE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the last message to the network may take.
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(1);

/// A server that other machines can find.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    /// The address on which the server listens.
    pub address: SocketAddr,
    /// The name of this machine, without a domain.
    pub machine: String,
    pub is_https: bool,
    /// The version of the server.
    pub version: &'static str,
}

/// Why a server is not announced.
#[derive(Debug, Error)]
pub enum AnnounceError {
    #[error("multicast DNS: {0}")]
    MulticastDns(#[from] mdns_sd::Error),
}

/// The addresses that a server is announced with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnnouncedAddresses {
    All,
    AllIpv4,
    One(IpAddr),
}

impl Announcement {
    /// Whether other machines can reach the server at all.
    fn addresses(&self) -> Option<AnnouncedAddresses> {
        match self.address.ip().to_canonical() {
            ip if ip.is_loopback() => None,
            IpAddr::V4(ip) if ip.is_unspecified() => Some(AnnouncedAddresses::AllIpv4),
            IpAddr::V6(ip) if ip.is_unspecified() => Some(AnnouncedAddresses::All),
            ip => Some(AnnouncedAddresses::One(ip)),
        }
    }

    /// The name that people see in a list of services.
    fn name(&self) -> String {
        // The name of the machine is ASCII, so every byte is a character.
        let name = format!("Hob on {}", self.machine);
        name.chars().take(LONGEST_NAME).collect()
    }

    fn service(&self, addresses: AnnouncedAddresses) -> Result<ServiceInfo, mdns_sd::Error> {
        let service_type = if self.is_https { HTTPS } else { HTTP };
        let host = format!("{}.", local_name(&self.machine));
        let properties = [("path", "/"), ("version", self.version)];
        let (name, port) = (self.name(), self.address.port());
        match addresses {
            AnnouncedAddresses::One(ip) => {
                ServiceInfo::new(service_type, &name, &host, ip, port, &properties[..])
            }
            AnnouncedAddresses::All | AnnouncedAddresses::AllIpv4 => {
                let service = ServiceInfo::new(service_type, &name, &host, (), port, &properties[..])?;
                Ok(service.enable_addr_auto())
            }
        }
    }
}

/// A server that is announced. Dropping it ends the announcement without waiting for the last message.
pub struct Announcer {
    daemon: ServiceDaemon,
    watching: JoinHandle<()>,
}

impl Announcer {
    /// Announces a server until it is stopped. `None` if only this machine can reach the server.
    pub fn start(announcement: &Announcement) -> Result<Option<Self>, AnnounceError> {
        let Some(addresses) = announcement.addresses() else { return Ok(None) };
        let service = announcement.service(addresses)?;
        let daemon = ServiceDaemon::new()?;
        match addresses {
            AnnouncedAddresses::All => {
                daemon.disable_interface(vec![IfKind::LoopbackV4, IfKind::LoopbackV6])?
            }
            AnnouncedAddresses::AllIpv4 => {
                daemon.disable_interface(vec![IfKind::LoopbackV4, IfKind::IPv6])?
            }
            AnnouncedAddresses::One(ip) => {
                daemon.disable_interface(IfKind::All)?;
                daemon.enable_interface(ip)?;
            }
        }
        let events = daemon.monitor()?;
        daemon.register(service)?;
        // Ends with the daemon, or with this value.
        let watching = tokio::spawn(watch(events));
        Ok(Some(Announcer { daemon, watching }))
    }

    /// Tells the network that the server has gone.
    pub async fn stop(self) {
        let goodbye = async {
            // The daemon sends the last message before it ends.
            let ended = self.daemon.shutdown().ok()?;
            ended.recv_async().await.ok()
        };
        if !matches!(tokio::time::timeout(GOODBYE_TIMEOUT, goodbye).await, Ok(Some(_))) {
            tracing::debug!("cannot announce that the server stops");
        }
    }
}

impl Drop for Announcer {
    fn drop(&mut self) {
        self.watching.abort();
        // A daemon that has ended already cannot be ended again, which is as good.
        let _ = self.daemon.shutdown();
    }
}

/// Logs what goes wrong: the library opens its sockets later, and reports that only here.
async fn watch(events: Receiver<DaemonEvent>) {
    let mut late = pin!(tokio::time::sleep(ANNOUNCE_TIMEOUT));
    let mut is_waiting = true;
    loop {
        let event = tokio::select! {
            event = events.recv_async() => event,
            () = late.as_mut(), if is_waiting => {
                is_waiting = false;
                warn_if_connected();
                continue;
            }
        };
        match event {
            Ok(DaemonEvent::Announce(name, interfaces)) => {
                is_waiting = false;
                tracing::debug!(%name, %interfaces, "announced the server");
            }
            Ok(DaemonEvent::NameChange(change)) if matches!(change.rr_type, RRType::A | RRType::AAAA) => {
                tracing::warn!(
                    name = %change.original,
                    "another machine of the network has the name of this one. Use the IP address of this \
                     machine, or rename it"
                );
            }
            Ok(DaemonEvent::Error(error)) => {
                tracing::warn!(
                    %error,
                    "the server cannot be announced on the network. Use the IP address of this machine"
                );
            }
            Ok(_) => {}
            Err(_) => return,
        }
    }
}

/// Without a network there is nothing to announce to, and nothing to warn about.
fn warn_if_connected() {
    if !network_addresses().is_empty() {
        tracing::warn!(
            "the server cannot be announced on the network: multicast DNS does not work here. Set [server] \
             announce = false to stop trying"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn announcement(address: &str) -> Announcement {
        let address = address.parse().unwrap();
        Announcement { address, machine: "ada".into(), is_https: false, version: "1.2.3" }
    }

    #[test]
    fn a_server_is_announced_with_the_addresses_it_listens_on() {
        let one = |ip: &str| Some(AnnouncedAddresses::One(ip.parse().unwrap()));
        for (address, expected) in [
            ("127.0.0.1:8000", None),
            ("127.8.8.8:8000", None),
            ("[::1]:8000", None),
            ("[::ffff:127.0.0.1]:8000", None),
            ("0.0.0.0:8000", Some(AnnouncedAddresses::AllIpv4)),
            ("[::]:8000", Some(AnnouncedAddresses::All)),
            ("192.168.1.7:8000", one("192.168.1.7")),
            ("[fd00::7]:8000", one("fd00::7")),
        ] {
            assert_eq!(announcement(address).addresses(), expected, "{address}");
        }
    }

    #[test]
    fn the_service_has_a_name_for_people_a_path_and_a_version() {
        let service = announcement("192.168.1.7:8000")
            .service(AnnouncedAddresses::One("192.168.1.7".parse().unwrap()))
            .unwrap();
        assert_eq!(service.get_fullname(), "Hob on ada._http._tcp.local.");
        assert_eq!(service.get_type(), "_http._tcp.local.");
        assert_eq!(service.get_hostname(), "ada.local.");
        assert_eq!(service.get_port(), 8000);
        assert_eq!(service.get_property_val_str("path"), Some("/"));
        assert_eq!(service.get_property_val_str("version"), Some("1.2.3"));
        assert!(!service.is_addr_auto());
        let secure = Announcement { is_https: true, ..announcement("0.0.0.0:8443") };
        let service = secure.service(AnnouncedAddresses::AllIpv4).unwrap();
        assert_eq!(service.get_type(), "_https._tcp.local.");
        assert!(service.is_addr_auto(), "the addresses of a laptop change");
    }

    #[test]
    fn a_long_name_of_a_machine_is_cut() {
        let long = Announcement { machine: "a".repeat(63), ..announcement("0.0.0.0:1") };
        assert_eq!(long.name().len(), LONGEST_NAME);
    }

    #[tokio::test]
    async fn a_server_for_this_machine_only_is_not_announced() {
        assert!(Announcer::start(&announcement("127.0.0.1:8000")).unwrap().is_none());
    }
}

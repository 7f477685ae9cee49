//! One lookup of the hosts in DNS. Knows nothing of engines: a name in, addresses out.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use hickory_net::NetError;
use hickory_net::proto::rr::{Name, RData, Record, RecordType};
use hob_core::{HostDiscovery, HostRecords};

use super::name_servers::NameServers;

/// A host that DNS lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundHost {
    pub address: SocketAddr,
    /// The name that its certificate must have; `None` for plain HTTP.
    pub tls_name: Option<String>,
}

impl FoundHost {
    /// Its base URL. Hobs that share hosts write it alike, so it identifies the host.
    pub fn url(&self) -> String {
        let scheme = if self.tls_name.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }
}

/// The answer to a lookup.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FoundHosts {
    /// In the order of their addresses, each once.
    pub(super) hosts: Vec<FoundHost>,
    /// How long DNS lets the answer be used; `None` without records.
    pub(super) valid_for: Option<Duration>,
}

/// Targets of services that are looked up at the same time.
const MAX_LOOKUPS: usize = 16;

/// Looks up the hosts. A name without records is an answer without hosts; an error means that there is no answer.
pub(super) async fn look_up(dns: &HostDiscovery) -> Result<FoundHosts, NetError> {
    // Read for each lookup, so that a changed `/etc/resolv.conf` counts.
    let servers = dns.server.map_or_else(NameServers::of_system, |server| Ok(NameServers::only(server)))?;
    let mut found = Vec::new();
    let mut valid_for = None;
    match dns.records {
        HostRecords::Addresses { port } => {
            let (addresses, valid) = addresses(&servers, name(&dns.name)?).await?;
            valid_for = shorter(valid_for, valid);
            let tls_name = dns.is_encrypted.then(|| certificate_name(&dns.name));
            found.extend(
                addresses
                    .into_iter()
                    .map(|ip| FoundHost { address: SocketAddr::new(ip, port), tls_name: tls_name.clone() }),
            );
        }
        HostRecords::Services => {
            let (services, valid) = services(&servers, name(&dns.name)?).await?;
            valid_for = shorter(valid_for, valid);
            let resolved = services.into_iter().map(|service| async {
                let (addresses, valid) = match service.addresses.is_empty() {
                    true => addresses(&servers, service.target.clone()).await?,
                    false => (service.addresses.clone(), None),
                };
                Ok::<_, NetError>((service, addresses, valid))
            });
            let resolved: Vec<_> = stream::iter(resolved).buffered(MAX_LOOKUPS).try_collect().await?;
            for (service, addresses, valid) in resolved {
                valid_for = shorter(valid_for, valid);
                let tls_name = dns.is_encrypted.then(|| certificate_name(&service.target.to_utf8()));
                found.extend(addresses.into_iter().map(|ip| FoundHost {
                    address: SocketAddr::new(ip, service.port),
                    tls_name: tls_name.clone(),
                }));
            }
        }
    }
    found.sort_by_key(|host| host.address);
    found.dedup_by_key(|host| host.address);
    Ok(FoundHosts { hosts: found, valid_for })
}

fn name(text: &str) -> Result<Name, NetError> {
    Ok(Name::from_utf8(text)?)
}

/// A name as certificates have it.
fn certificate_name(name: &str) -> String {
    name.trim_end_matches('.').to_owned()
}

/// The addresses of a name: A records, or AAAA records if there are none. Machines with both would be listed twice.
async fn addresses(servers: &NameServers, name: Name) -> Result<(Vec<IpAddr>, Option<Duration>), NetError> {
    for kind in [RecordType::A, RecordType::AAAA] {
        let records = records(servers, name.clone(), kind).await?.answers;
        let addresses: Vec<IpAddr> = records.iter().filter_map(address).collect();
        if !addresses.is_empty() {
            return Ok((addresses, shortest_ttl(&records)));
        }
    }
    Ok((Vec::new(), None))
}

/// What an SRV record says.
struct ServiceRecord {
    priority: u16,
    port: u16,
    target: Name,
    /// The addresses of the target, if the DNS server sent them too.
    addresses: Vec<IpAddr>,
}

/// The SRV records with the best priority.
async fn services(
    servers: &NameServers,
    name: Name,
) -> Result<(Vec<ServiceRecord>, Option<Duration>), NetError> {
    let Records { answers, additional } = records(servers, name, RecordType::SRV).await?;
    let mut services: Vec<ServiceRecord> = Vec::new();
    for record in &answers {
        let RData::SRV(service) = &record.data else { continue };
        // A root target says that the service is not available.
        if service.target.is_root() {
            continue;
        }
        let of_kind = |is_v4: bool| -> Vec<IpAddr> {
            let of_target = additional.iter().filter(|record| record.name == service.target);
            of_target.filter_map(address).filter(|ip| ip.is_ipv4() == is_v4).collect()
        };
        let addresses = Some(of_kind(true)).filter(|v4| !v4.is_empty()).unwrap_or_else(|| of_kind(false));
        services.push(ServiceRecord {
            priority: service.priority,
            port: service.port,
            target: service.target.clone(),
            addresses,
        });
    }
    let best = services.iter().map(|service| service.priority).min();
    services.retain(|service| Some(service.priority) == best);
    Ok((services, shortest_ttl(&answers)))
}

#[derive(Default)]
struct Records {
    answers: Vec<Record>,
    additional: Vec<Record>,
}

/// The records of a name; none is no error.
async fn records(servers: &NameServers, name: Name, kind: RecordType) -> Result<Records, NetError> {
    match servers.look_up(&name, kind).await {
        Ok(found) => Ok(Records { answers: found.answers, additional: found.additionals }),
        Err(error) if error.is_no_records_found() => Ok(Records::default()),
        Err(error) => Err(error),
    }
}

fn address(record: &Record) -> Option<IpAddr> {
    match &record.data {
        RData::A(address) => Some(address.0.into()),
        RData::AAAA(address) => Some(address.0.into()),
        _ => None,
    }
}

fn shortest_ttl(records: &[Record]) -> Option<Duration> {
    records.iter().map(|record| Duration::from_secs(record.ttl.into())).min()
}

fn shorter(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    one.into_iter().chain(other).min()
}

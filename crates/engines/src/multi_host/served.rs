//! The servers of one engine as the owner names them: by address, by a name in DNS, or both. Hob is not one of them, because a request to
//! its own address would come back.

use std::sync::Arc;

use hob_core::{Engine, EngineError, HostDiscovery};
use hob_net::{BindAddress, is_own_address};

use super::discovery::{DiscoveryOptions, FoundHost, RefreshTimes};
use super::{MultiHost, MultiHostOptions};
use crate::wire::client::{Endpoint, EndpointOptions};

/// The servers of one engine.
pub struct ServedHosts {
    /// The base URLs, without those that `discover` finds.
    pub addresses: Vec<String>,
    /// The name in DNS that lists servers.
    pub discover: Option<HostDiscovery>,
    /// How each server is reached. Its `host` is replaced.
    pub endpoint: EndpointOptions,
    /// Where this process listens.
    pub own_address: BindAddress,
}

impl MultiHost {
    /// One engine over these servers; `engine` speaks to one of them. `None` without servers. Hob's own address is used only if it is the
    /// only one, so that the selection can say so. Must be called in a runtime, which looks up hosts in DNS.
    pub fn served<E: Engine + 'static>(
        hosts: ServedHosts,
        engine: impl Fn(Endpoint) -> E + Send + Sync + 'static,
    ) -> Result<Option<Arc<dyn Engine>>, EngineError> {
        let ServedHosts { mut addresses, discover, endpoint, own_address } = hosts;
        if addresses.iter().any(|address| !is_own_address(address, &own_address)) {
            addresses.retain(|address| {
                let is_own = is_own_address(address, &own_address);
                if is_own {
                    tracing::warn!(
                        engine = endpoint.engine,
                        host = address,
                        "a host is skipped: its address is Hob's own. Correct the hosts of the engine, or change \
                         [server] port"
                    );
                }
                !is_own
            });
        }
        let mut fixed: Vec<Arc<dyn Engine>> = Vec::with_capacity(addresses.len());
        for host in addresses {
            fixed.push(Arc::new(engine(Endpoint::new(EndpointOptions { host, ..endpoint.clone() })?)));
        }
        let options = MultiHostOptions { resend: endpoint.resend, ..MultiHostOptions::default() };
        let Some(dns) = discover else { return Ok(MultiHost::of(fixed, options)) };
        let key = endpoint.engine.clone();
        let make = move |found: &FoundHost| -> Result<Option<Arc<dyn Engine>>, EngineError> {
            let host = found.url();
            if is_own_address(&host, &own_address) {
                return Ok(None);
            }
            let endpoint = Endpoint::new(EndpointOptions {
                host,
                tls_name: found.tls_name.clone(),
                // The address was looked up here. A proxy may know others.
                connects_directly: true,
                ..endpoint.clone()
            })?;
            Ok(Some(Arc::new(engine(endpoint))))
        };
        let discovery = DiscoveryOptions {
            engine: key,
            dns,
            fixed,
            make: Box::new(make),
            refresh: RefreshTimes::default(),
        };
        Ok(Some(MultiHost::discovered(discovery, options)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ollama::Ollama;

    #[tokio::test]
    async fn hobs_own_address_is_a_host_only_if_there_is_no_other() {
        let address = |addresses: &[&str]| {
            let hosts = ServedHosts {
                addresses: addresses.iter().map(|address| (*address).to_owned()).collect(),
                discover: None,
                endpoint: EndpointOptions::new("ollama", ""),
                own_address: BindAddress { host: "127.0.0.1".to_owned(), port: 8000 },
            };
            let engine = MultiHost::served(hosts, Ollama::new).unwrap();
            engine.map(|engine| engine.address().to_owned())
        };
        let (own, other) = ("http://localhost:8000", "http://gpu.lan:8000");
        assert_eq!(address(&[own, other]).as_deref(), Some(other));
        assert_eq!(address(&[own]).as_deref(), Some(own));
        assert_eq!(address(&[]), None);
    }
}

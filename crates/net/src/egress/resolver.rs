//! Names into addresses that may be connected to.
//!
//! The connection is made to exactly the addresses that were checked here, in the same step: there is no second look-up
//! that a rebinding name server could answer differently.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use thiserror::Error;

use super::address::AddressPolicy;

/// The answer of a look-up.
pub type LookupFuture = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Asks for the addresses of a name.
pub type AddressLookup = Arc<dyn Fn(String) -> LookupFuture + Send + Sync>;

/// The system's own resolver.
pub fn system_lookup() -> AddressLookup {
    Arc::new(|name| {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    })
}

/// A name that may not be fetched from.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("'{name}' is at {address}, which is no public address")]
pub struct ForbiddenAddress {
    pub name: String,
    pub address: IpAddr,
}

/// A resolver that gives out permitted addresses only.
pub struct CheckedResolver {
    pub policy: AddressPolicy,
    pub lookup: AddressLookup,
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let name = name.as_str().to_owned();
        let policy = self.policy.clone();
        let found = (self.lookup)(name.clone());
        Box::pin(async move {
            let addresses = found.await?;
            // All of them, not the first: which one is tried is up to the connector.
            if let Some(address) = addresses.iter().find(|address| !policy.permits_host(**address)) {
                return Err(ForbiddenAddress { name, address: *address }.into());
            }
            let sockets = addresses.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(sockets.collect::<Vec<_>>().into_iter()) as Addrs)
        })
    }
}

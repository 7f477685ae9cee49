//! Resolves names to permitted addresses.
//!
//! The connection uses exactly the addresses that were checked, so there is no second look-up that a name server could answer
//! differently (DNS rebinding).

use std::error::Error as StdError;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use thiserror::Error;

use super::address::AddressPolicy;

pub type LookupFuture = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Looks up the addresses of a name.
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

/// A name with a forbidden address.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("'{name}' has the address {address}, which is not public")]
pub struct ForbiddenAddress {
    pub name: String,
    pub address: IpAddr,
}

impl ForbiddenAddress {
    /// The forbidden address that made a request fail.
    pub fn cause_of<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a Self> {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if let Some(forbidden) = error.downcast_ref() {
                return Some(forbidden);
            }
            cause = error.source();
        }
        None
    }
}

/// A resolver that returns permitted addresses only.
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
            // All of them, because the connector may try any.
            if let Some(address) = addresses.iter().find(|address| !policy.permits_host(**address)) {
                return Err(ForbiddenAddress { name, address: *address }.into());
            }
            let sockets = addresses.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(sockets.collect::<Vec<_>>().into_iter()) as Addrs)
        })
    }
}

//! Which requests the server accepts: those that no foreign web page can have made (`host_and_origin.rs`), with the optional key
//! (`api_key.rs`).

mod api_key;
mod host_and_origin;

use std::net::IpAddr;

use axum::http::Request;
use hob_config::ServerConfig;

use self::api_key::ApiKeyCheck;
pub(crate) use self::api_key::CallerSources;
use self::host_and_origin::OriginCheck;
use crate::caller_role::{Proof, RequestOrigin};
use crate::error::{ApiError, ApiResult};

/// What the guard found out about a request that it accepts.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) origin: RequestOrigin,
    pub(crate) proof: Proof,
}

/// The checks of the configuration that is in use.
pub(crate) struct Guard {
    origin: OriginCheck,
    key: ApiKeyCheck,
}

impl Guard {
    /// A guard for a machine that has these names on its own network.
    pub(crate) fn new(config: &ServerConfig, machine_names: Vec<String>) -> Self {
        Guard {
            origin: OriginCheck::new(config, machine_names),
            key: ApiKeyCheck::new(config.api_key.clone()),
        }
    }

    /// Accepts a request of `peer`, or returns why not.
    pub(crate) fn check<B>(
        &self,
        request: &Request<B>,
        peer: IpAddr,
        sources: CallerSources<'_>,
    ) -> ApiResult<Accepted> {
        let origin = self.origin.check(request)?;
        let proof = self.key.check(request, peer, origin, sources)?;
        Ok(Accepted { origin, proof })
    }

    /// The answer to a wrong key, after a delay if there were too many.
    pub(crate) async fn delay_wrong_key(&self, error: ApiError, peer: IpAddr) -> ApiError {
        self.key.delay_wrong_key(error, peer).await
    }
}

#[cfg(test)]
mod guard_tests;

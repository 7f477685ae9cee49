//! Settings that change while the server runs, without dropping a connection: the access rules. All other settings need a
//! restart.

use std::sync::Arc;

use arc_swap::ArcSwap;
use hob_app::startup::identity::identity_rules;
use hob_config::ServerConfig;
use hob_keys::{IdentityError, IdentityService};
use tower_http::cors::CorsLayer;

use crate::cors::cors;
use crate::guard::Guard;

/// The configuration keys that [`ServerControl::reload`] applies.
pub const RELOADED_KEYS: [&str; 5] = [
    "server.api_key",
    "server.allowed_hosts",
    "server.cors_origins",
    "server.identity.blocked",
    "server.identity.rules",
];

/// The rules of access. A request is checked by the rules at the time of its arrival.
pub(crate) struct AccessRules {
    pub(crate) guard: Guard,
    /// Lets listed pages read answers. `None` if no page is listed.
    pub(crate) cors: Option<CorsLayer>,
}

impl AccessRules {
    pub(crate) fn new(config: &ServerConfig) -> Self {
        AccessRules { guard: Guard::new(config), cors: cors(config) }
    }
}

/// A handle to a running server.
#[derive(Clone)]
pub struct ServerControl {
    pub(crate) rules: Arc<ArcSwap<AccessRules>>,
    pub(crate) identity: Option<Arc<IdentityService>>,
}

impl ServerControl {
    /// Applies [`RELOADED_KEYS`], or none of them. Requests in progress are not affected.
    pub fn reload(&self, config: &ServerConfig) -> Result<(), IdentityError> {
        if let Some(identity) = &self.identity {
            identity.set_rules(identity_rules(&config.identity)?);
        }
        self.rules.store(Arc::new(AccessRules::new(config)));
        Ok(())
    }
}

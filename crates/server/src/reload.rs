//! Settings that change while the server runs, without dropping a connection: the access rules. All other settings need a
//! restart.

use std::sync::Arc;

use arc_swap::ArcSwap;
use hob_config::ServerConfig;
use tower_http::cors::CorsLayer;

use crate::cors::cors;
use crate::guard::Guard;

/// The configuration keys that [`ServerControl::reload`] applies.
pub const RELOADED_KEYS: [&str; 3] = ["server.api_key", "server.allowed_hosts", "server.cors_origins"];

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
}

impl ServerControl {
    /// Applies [`RELOADED_KEYS`]. Requests in progress are not affected.
    pub fn reload(&self, config: &ServerConfig) {
        self.rules.store(Arc::new(AccessRules::new(config)));
    }
}

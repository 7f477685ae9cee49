//! What can be set anew while the server runs, without a connection being dropped: who may come in. Everything else holds from
//! the start of a server to its end.

use std::sync::Arc;

use arc_swap::ArcSwap;
use hob_config::ServerConfig;
use tower_http::cors::CorsLayer;

use crate::cors::cors;
use crate::guard::Guard;

/// The keys of the configuration that [`ServerControl::reload`] heeds.
pub const RELOADED_KEYS: [&str; 3] = ["server.api_key", "server.allowed_hosts", "server.cors_origins"];

/// Who may come in. A request is judged by the rules that hold when it comes.
pub(crate) struct AccessRules {
    pub(crate) guard: Guard,
    /// Lets an invited page read its answers. `None` where no page is invited.
    pub(crate) cors: Option<CorsLayer>,
}

impl AccessRules {
    pub(crate) fn new(config: &ServerConfig) -> Self {
        AccessRules { guard: Guard::new(config), cors: cors(config) }
    }
}

/// Changes a server that runs.
#[derive(Clone)]
pub struct ServerControl {
    pub(crate) rules: Arc<ArcSwap<AccessRules>>,
}

impl ServerControl {
    /// Takes over [`RELOADED_KEYS`]. Requests under way are not disturbed.
    pub fn reload(&self, config: &ServerConfig) {
        self.rules.store(Arc::new(AccessRules::new(config)));
    }
}

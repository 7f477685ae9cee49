//! Settings that change while the server runs, without dropping a connection. All other settings need a restart.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use hob_app::startup::identity::identity_options;
use hob_config::{AccessLog, ServerConfig};
use hob_core::CollectionName;
use hob_keys::IdentityService;
use hob_net::{CertificateChange, ServerCertificate, machine_names};
use tower_http::cors::CorsLayer;

use crate::access_log::AccessLogWriter;
use crate::cors::cors;
use crate::guard::Guard;
use crate::pages::changes::{Audience, Changes, Topic};
use crate::secure_connection::certificate_files;
use crate::serve_error::ServeError;

/// The configuration keys that take effect without a restart, beside those of channels and sources. The program that runs the server sets
/// the default model, and [`ServerControl::reload`] applies the others. The files of TLS count only if TLS is on before and after, and the
/// rules of identities only if identities are.
const RELOADED_KEYS: [&str; 12] = [
    "intelligence.default_model",
    "server.model",
    "server.api_key",
    "server.allowed_hosts",
    "server.cors_origins",
    "server.access_log",
    "server.header_timeout",
    "server.write_timeout",
    "server.tls.cert",
    "server.tls.key",
    "server.identity.blocked",
    "server.identity.rules",
];

/// Whether a configuration key takes effect without a restart, as far as the name says.
pub fn is_reloaded(key: &str) -> bool {
    RELOADED_KEYS.contains(&key) || is_of_channels(key) || is_of_sources(key)
}

/// Whether a configuration key is one of the channels. The program that runs the server replaces them.
pub fn is_of_channels(key: &str) -> bool {
    key.starts_with("channel.")
}

/// Whether a configuration key is one of the sources of the owner, or of the mail account. The program that runs the server replaces
/// them.
pub fn is_of_sources(key: &str) -> bool {
    key.starts_with("sources.") || is_of_mail(key)
}

/// Whether a configuration key is one of the mail account, which a channel may use too.
pub fn is_of_mail(key: &str) -> bool {
    key.starts_with("mail.")
}

/// The rules of access. A request is checked by the rules at the time of its arrival.
pub(crate) struct AccessRules {
    pub(crate) guard: Guard,
    /// Lets listed pages read answers. `None` if no page is listed.
    pub(crate) cors: Option<CorsLayer>,
}

impl AccessRules {
    pub(crate) fn new(config: &ServerConfig) -> Self {
        AccessRules { guard: Guard::new(config, machine_names()), cors: cors(config) }
    }
}

/// How long a client may take. A connection keeps those of its beginning.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionTimeouts {
    /// For the head of a request.
    pub(crate) header: Duration,
    /// Without reading its answer.
    pub(crate) write: Duration,
}

impl ConnectionTimeouts {
    pub(crate) fn of(config: &ServerConfig) -> Self {
        ConnectionTimeouts { header: config.header_timeout, write: config.write_timeout }
    }
}

/// A handle to a running server.
#[derive(Clone)]
pub struct ServerControl {
    pub(crate) rules: Arc<ArcSwap<AccessRules>>,
    pub(crate) access_log: Arc<ArcSwapOption<AccessLogWriter>>,
    pub(crate) timeouts: Arc<ArcSwap<ConnectionTimeouts>>,
    /// `None` if the server was started without TLS.
    pub(crate) certificate: Option<Arc<ServerCertificate>>,
    /// `None` if the server was started without identities from outside.
    pub(crate) identity: Option<Arc<IdentityService>>,
    pub(crate) changes: Changes,
}

impl ServerControl {
    /// Tells the open pages that another program has changed something: `tasks`, `documents`, `channels` and so on. Documents may be of
    /// one collection, whose readers learn of it too. Returns whether there is such a topic.
    pub fn announce(&self, topic: &str, collection: Option<&str>) -> bool {
        let Some(topic) = Topic::parse(topic) else { return false };
        let collection = collection.and_then(|name| CollectionName::parse(name).ok());
        let audience = match (topic, collection) {
            (Topic::Models, _) => Audience::Everyone,
            (Topic::Documents, Some(collection)) => Audience::Collection(collection),
            _ => Audience::Owner,
        };
        self.changes.publish(topic, &audience);
        true
    }

    /// Applies the keys of [`is_reloaded`] that are of the server, and reads the certificate again. Requests and connections in progress are not affected. If the
    /// certificate or the rules of identities cannot be used, nothing changes. Blocks.
    pub fn reload(&self, config: &ServerConfig) -> Result<CertificateChange, ServeError> {
        let identity_rules = identity_options(&config.identity)?.map(|options| options.rules);
        let change = match (&self.certificate, certificate_files(&config.tls)?) {
            (Some(certificate), Some(files)) => certificate.reload(files)?,
            // Switching TLS on or off needs a restart.
            (Some(_), None) | (None, _) => CertificateChange::None,
        };
        // Switching identities on or off needs a restart too.
        if let (Some(identity), Some(rules)) = (&self.identity, identity_rules) {
            identity.set_rules(rules);
        }
        self.rules.store(Arc::new(AccessRules::new(config)));
        self.timeouts.store(Arc::new(ConnectionTimeouts::of(config)));
        let format = self.access_log.load().as_ref().map(|writer| writer.format());
        if format.unwrap_or(AccessLog::Off) != config.access_log {
            self.access_log.store(AccessLogWriter::start(config.access_log));
        }
        Ok(change)
    }
}

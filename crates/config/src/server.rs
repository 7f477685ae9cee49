//! `[server]`: the address, the API key and allowed origins, and the limits of the HTTP server.

use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;

use crate::agent::{AGENT, AgentName};
use crate::identity::IdentityConfig;
use crate::kind::{
    BIND_ADDRESS, COUNT, COUNT_OR_NONE, FLAG, HOST_NAMES, OPTIONAL_ABSOLUTE_PATH, OPTIONAL_TEXT, ORIGINS,
    PORT, SECONDS, SECONDS_OR_NONE, SECRET, quote,
};
use crate::settings_schema::{Exposure, Kind, keys_of};

/// Settings of the HTTP server.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// The address to bind: an IP without brackets, or a name.
    pub host: String,
    pub port: u16,
    /// The agent for requests that are not streamed; `None` asks the engine directly.
    pub agent: Option<AgentName>,
    /// The model for requests that name none. See [`Config::default_model`](crate::Config::default_model).
    pub model: Option<String>,
    /// Reserved.
    pub workers: usize,
    /// What clients must send as a bearer token; `None` requires none. `HOB_API_KEY` overrides the file.
    pub api_key: Option<SecretString>,
    /// Names under which the server may be addressed, besides IP addresses, `localhost` and the names of this machine; lower case,
    /// without a port.
    pub allowed_hosts: Vec<String>,
    /// Whether a server that other machines can reach is announced to them with multicast DNS.
    pub announce: bool,
    /// What happens to requests of keys whose limits cannot be read.
    pub limit_failure: LimitFailure,
    /// Whether and how every request is logged.
    pub access_log: AccessLog,
    /// Origins of web pages that may read answers, as browsers send them; `*` is all. Empty switches CORS off.
    pub cors_origins: Vec<String>,
    /// The largest request body, in MiB.
    pub max_body_mb: usize,
    /// How many requests are worked on at once.
    pub max_in_flight: usize,
    /// How many more may wait; the next one is refused.
    pub max_waiting: usize,
    /// How long a request waits before it is refused.
    pub queue_timeout: Duration,
    /// How long a client may take to send the head of a request, the wait for its first byte included.
    pub header_timeout: Duration,
    /// How long a client may pause while it sends a body.
    pub body_timeout: Duration,
    /// How long a client may leave an answer unread.
    pub write_timeout: Duration,
    /// How long the server still accepts requests after the signal to stop, while it reports that it is not ready.
    pub drain_seconds: Duration,
    /// How long running answers may continue after the server begins to stop.
    pub shutdown_grace: Duration,
    pub tls: ServerTlsConfig,
    /// Tokens of an identity provider.
    pub identity: IdentityConfig,
}

/// `[server.tls]`: HTTPS without a proxy. Both files are PEM, and both are set or none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerTlsConfig {
    /// The certificate of the server, then those between it and its authority.
    pub cert: Option<PathBuf>,
    /// The private key of the certificate.
    pub key: Option<PathBuf>,
}

impl ServerTlsConfig {
    /// Whether the server speaks HTTPS, and only HTTPS.
    pub fn is_on(&self) -> bool {
        self.cert.is_some() || self.key.is_some()
    }
}

/// What happens to requests of keys whose limits cannot be read, such as when the database is not available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitFailure {
    /// They get an error, so that no key uses more than it may.
    Refuse,
    /// They are answered and not counted.
    Allow,
}

hob_core::named_variants! {
    LimitFailure {
        Refuse => "refuse",
        Allow => "allow",
    }
}

/// Whether and how every request is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessLog {
    Off,
    Text,
    Json,
}

hob_core::named_variants! {
    AccessLog {
        Off => "off",
        Text => "text",
        Json => "json",
    }
}

const LIMIT_FAILURE: Kind<LimitFailure> = Kind {
    expected: "refuse or allow",
    read: |typed| LimitFailure::parse(typed.text()?),
    write: |choice| quote(choice.as_str()),
    exposure: Exposure::OneOf(&["refuse", "allow"]),
};

const ACCESS_LOG: Kind<AccessLog> = Kind {
    expected: "off, text or json",
    read: |typed| AccessLog::parse(typed.text()?),
    write: |choice| quote(choice.as_str()),
    exposure: Exposure::OneOf(&["off", "text", "json"]),
};

impl ServerConfig {
    /// [`Self::max_body_mb`] in bytes.
    pub fn max_body_bytes(&self) -> usize {
        self.max_body_mb.saturating_mul(1024 * 1024)
    }
}

impl Default for ServerConfig {
    fn default() -> Self {
        ServerConfig {
            host: "0.0.0.0".to_owned(),
            port: 8000,
            agent: Some(AgentName::Orchestrator),
            model: None,
            workers: 1,
            api_key: None,
            allowed_hosts: Vec::new(),
            announce: true,
            limit_failure: LimitFailure::Refuse,
            access_log: AccessLog::Off,
            cors_origins: Vec::new(),
            max_body_mb: 64,
            max_in_flight: 1024,
            max_waiting: 1024,
            queue_timeout: Duration::from_secs(30),
            header_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(60),
            drain_seconds: Duration::ZERO,
            shutdown_grace: Duration::from_secs(30),
            tls: ServerTlsConfig::default(),
            identity: IdentityConfig::default(),
        }
    }
}

keys_of! {
    ServerConfig {
        host: BIND_ADDRESS, "Address to listen on; 127.0.0.1 accepts connections from this machine only.";
        port: PORT, "Port to listen on.";
        agent: AGENT, "Agent for requests that are not streamed: simple, orchestrator, react, codeact; \"\" for none.";
        model: OPTIONAL_TEXT, "Model that the name default stands for; \"\" uses [intelligence] default_model.";
        workers: COUNT, "Reserved; has no effect.";
        api_key: SECRET, "API key that clients must send; \"\" requires none. HOB_API_KEY overrides it.";
        allowed_hosts: HOST_NAMES, "Host names under which clients may call this server, besides IP addresses, localhost and the name of this machine.";
        announce: FLAG, "Announces the server to the local network (mDNS) as http://HOSTNAME.local, unless it accepts connections from this machine only.";
        cors_origins: ORIGINS, "Origins of web pages that may call this server from a browser, such as \"https://app.example.org\".";
        limit_failure: LIMIT_FAILURE, "What happens to requests of keys whose limits cannot be read: refuse or allow.";
        access_log: ACCESS_LOG, "Log of every request on standard error: off, text or json.";
        max_body_mb: COUNT, "Largest request body in MiB; a larger one gets status 413.";
        max_in_flight: COUNT, "Requests processed at the same time; others wait.";
        max_waiting: COUNT_OR_NONE, "Requests that may wait; further ones are refused immediately.";
        queue_timeout: SECONDS_OR_NONE, "Seconds a request waits before it gets status 503.";
        header_timeout: SECONDS, "Seconds a client may take to send the head of a request, or keep an idle connection open.";
        body_timeout: SECONDS, "Seconds without data of a request body before the server refuses the request.";
        write_timeout: SECONDS, "Seconds a client may stop reading its answer before the server disconnects it.";
        drain_seconds: SECONDS_OR_NONE, "Seconds that the server still accepts requests after the signal to stop, while GET /health/ready answers 503; for servers behind a load balancer.";
        shutdown_grace: SECONDS_OR_NONE, "Seconds that running answers have to finish when the server stops.";
        [tls], "HTTPS without a proxy. Hob notices renewed files without a restart.";
        [identity], "Single sign-on: tokens of your identity provider instead of keys.";
    }
}

keys_of! {
    ServerTlsConfig {
        cert: OPTIONAL_ABSOLUTE_PATH, "PEM file with the certificate of the server, followed by those of intermediate authorities; \"\" serves plain HTTP.";
        key: OPTIONAL_ABSOLUTE_PATH, "PEM file with the private key of the certificate.";
    }
}

//! The HTTP endpoint of one engine: transport, timeouts, API key, and the errors.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hob_core::EngineError;
use hob_core::request_budget::{json_values, thousands};
use hob_net::{
    CertificateCheck, DEFAULT_CONNECT_TIMEOUT, FixedAddress, ProxyUse, is_loopback, trace_context,
};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use url::{Host, Url};

use super::direct::{Direct, DirectOptions};
use super::error_response::EngineErrorBody;
use super::remote::{RemoteClient, RemoteClientOptions};
use super::resend::Resend;
use super::response::Response;
use super::transport_error::TransportError;

/// The time limit of a health probe.
pub const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// llama.cpp and uvicorn close a connection after five idle seconds. Closing it earlier avoids sending a request on a
/// connection that the engine is about to close.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(4);

/// A response body that is read at once. A stream is limited only by the size of a frame. Answers with the most values have the
/// probabilities of tokens, of about eight bytes each.
const ANSWER: EngineBodyLimit = EngineBodyLimit { bytes: 64 << 20, values: 8_000_000 };

/// A list of models, or the description of one.
const LIST: EngineBodyLimit = EngineBodyLimit { bytes: 8 << 20, values: 1_000_000 };

/// The part of an error's body that is read.
const MAX_ERROR_BYTES: usize = 64 << 10;

/// How much of a body is read. The values are JSON values: one of two bytes takes a hundred or more once it is parsed.
#[derive(Debug, Clone, Copy)]
struct EngineBodyLimit {
    bytes: usize,
    values: usize,
}

/// The header with an engine's API key, such as `authorization: Bearer …`.
#[derive(Debug, Clone)]
pub struct KeyHeader {
    pub name: HeaderName,
    /// The text before the key, such as `Bearer `.
    pub prefix: &'static str,
    pub key: SecretString,
}

impl KeyHeader {
    /// `authorization: Bearer KEY`.
    pub fn bearer(key: SecretString) -> Self {
        KeyHeader { name: reqwest::header::AUTHORIZATION, prefix: "Bearer ", key }
    }
}

/// Options of an endpoint.
#[derive(Debug, Clone)]
pub struct EndpointOptions {
    /// The engine's key, for errors.
    pub engine: String,
    /// Base URL without a trailing slash.
    pub host: String,
    /// The name in the server's certificate and in `Host`, if `host` has the address of the server in its place.
    pub tls_name: Option<String>,
    /// The longest wait for the next bytes of a connection, including the head of the response.
    pub timeout: Duration,
    /// Whether no proxy is used, whatever the environment says.
    pub connects_directly: bool,
    pub key: Option<KeyHeader>,
    /// Headers sent with every request.
    pub headers: HeaderMap,
    pub resend: Resend,
    /// Whether the server must prove its name.
    pub certificates: CertificateCheck,
}

impl EndpointOptions {
    pub fn new(engine: impl Into<String>, host: impl Into<String>) -> Self {
        EndpointOptions {
            engine: engine.into(),
            host: host.into(),
            tls_name: None,
            timeout: Duration::from_secs(120),
            connects_directly: false,
            key: None,
            headers: HeaderMap::new(),
            resend: Resend::Unanswered,
            certificates: CertificateCheck::Verify,
        }
    }
}

/// The address of an engine, and the transport to it.
#[derive(Debug, Clone)]
pub struct Endpoint {
    engine: String,
    host: String,
    /// The base URL of requests: `host`, or the same with the name of the certificate.
    base_url: String,
    timeout: Duration,
    transport: Transport,
}

/// How requests are sent.
#[derive(Debug, Clone)]
enum Transport {
    /// Plain HTTP on this machine, as for most engines.
    Direct(Direct),
    Remote(Box<RemoteClient>),
}

impl Endpoint {
    pub fn new(options: EndpointOptions) -> Result<Self, EngineError> {
        let not_configured =
            |reason: String| EngineError::NotConfigured { engine: options.engine.clone(), reason };
        let host = options.host.trim_end_matches('/').to_owned();
        let url = Url::parse(&host)
            .map_err(|error| not_configured(format!("'{host}' is not a valid URL ({error})")))?;

        let mut base_url = host.clone();
        let mut fixed_address = None;
        if let Some(name) = &options.tls_name {
            let port = url.port_or_known_default().unwrap_or_default();
            let ip: Option<IpAddr> = match url.host() {
                Some(Host::Ipv4(ip)) => Some(ip.into()),
                Some(Host::Ipv6(ip)) => Some(ip.into()),
                Some(Host::Domain(_)) | None => None,
            };
            let ip = ip.ok_or_else(|| not_configured(format!("'{host}' has no IP address")))?;
            let mut named = url.clone();
            named
                .set_host(Some(name))
                .map_err(|error| not_configured(format!("'{name}' is not a valid name ({error})")))?;
            base_url = named.as_str().trim_end_matches('/').to_owned();
            fixed_address = Some(FixedAddress { name: name.clone(), address: SocketAddr::new(ip, port) });
        }

        let mut headers = options.headers.clone();
        if let Some(KeyHeader { name, prefix, key }) = &options.key {
            let mut value =
                HeaderValue::try_from(format!("{prefix}{}", key.expose_secret())).map_err(|_| {
                    not_configured(
                        "the API key contains characters that an HTTP header does not allow".into(),
                    )
                })?;
            value.set_sensitive(true);
            headers.insert(name.clone(), value);
        }
        let connect_timeout = DEFAULT_CONNECT_TIMEOUT.min(options.timeout);
        // A simulated network has several machines, and only the direct client runs in it.
        let is_direct = is_loopback(&url) || cfg!(simulation);
        let local = is_direct.then(|| {
            let options = DirectOptions {
                headers: headers.clone(),
                connect_timeout,
                read_timeout: options.timeout,
                idle_timeout: POOL_IDLE_TIMEOUT,
                resend: options.resend,
            };
            Direct::new(&url, options)
        });
        let transport = match local.flatten() {
            Some(direct) => Transport::Direct(direct),
            None => {
                let options = RemoteClientOptions {
                    headers,
                    connect_timeout,
                    read_timeout: options.timeout,
                    idle_timeout: POOL_IDLE_TIMEOUT,
                    proxy: if options.connects_directly { ProxyUse::Never } else { ProxyUse::towards(&url) },
                    fixed_address,
                    resend: options.resend,
                    certificates: options.certificates,
                };
                let remote = RemoteClient::new(options).map_err(|error| not_configured(error.to_string()))?;
                Transport::Remote(Box::new(remote))
            }
        };
        Ok(Endpoint { engine: options.engine, host, base_url, timeout: options.timeout, transport })
    }

    pub fn engine(&self) -> &str {
        &self.engine
    }

    pub fn host(&self) -> &str {
        &self.host
    }

    /// Sends JSON that is already serialized. Does not check the status of the response.
    pub async fn post(&self, path: &str, json: Vec<u8>) -> Result<Response, EngineError> {
        self.send(Method::POST, path, json).await
    }

    /// The same as a request to delete something.
    pub async fn delete(&self, path: &str, json: Vec<u8>) -> Result<Response, EngineError> {
        self.send(Method::DELETE, path, json).await
    }

    async fn send(&self, method: Method, path: &str, json: Vec<u8>) -> Result<Response, EngineError> {
        let sent = match &self.transport {
            Transport::Direct(direct) => {
                direct.send_json(method.as_str(), path, json).await.map(Response::from)
            }
            Transport::Remote(remote) => {
                self.send_remote(remote, method, path, "application/json", json).await
            }
        };
        sent.map_err(|broken| self.failure(broken))
    }

    /// Sends a body of another type than JSON. Does not check the status of the response.
    pub async fn post_as(
        &self,
        path: &str,
        content_type: &str,
        body: &[u8],
    ) -> Result<Response, EngineError> {
        let sent = match &self.transport {
            Transport::Direct(direct) => direct.post_as(path, content_type, body).await.map(Response::from),
            Transport::Remote(remote) => {
                self.send_remote(remote, Method::POST, path, content_type, body.to_vec()).await
            }
        };
        sent.map_err(|broken| self.failure(broken))
    }

    async fn send_remote(
        &self,
        remote: &RemoteClient,
        method: Method,
        path: &str,
        content_type: &str,
        body: Vec<u8>,
    ) -> Result<Response, TransportError> {
        let mut request = remote
            .client
            .request(method, format!("{}{path}", self.base_url))
            .header(reqwest::header::CONTENT_TYPE, content_type)
            .body(body);
        if let Some(parent) = trace_context::header() {
            request = request.header(trace_context::TRACEPARENT, parent);
        }
        match request.build() {
            Ok(request) => remote.send(request).await,
            Err(error) => Err(error.into()),
        }
    }

    pub async fn get(&self, path: &str) -> Result<Response, EngineError> {
        let sent = match &self.transport {
            Transport::Direct(direct) => direct.get(path).await.map(Response::from),
            Transport::Remote(remote) => {
                match remote.client.get(format!("{}{path}", self.base_url)).build() {
                    Ok(request) => remote.send(request).await,
                    Err(error) => Err(error.into()),
                }
            }
        };
        sent.map_err(|broken| self.failure(broken))
    }

    /// Whether `path` answers 2xx in time.
    pub async fn probe(&self, path: &str) -> bool {
        let answered = tokio::time::timeout(PROBE_TIMEOUT, self.get(path)).await;
        matches!(answered, Ok(Ok(response)) if response.status.is_success())
    }

    /// The whole body of a response.
    pub async fn body(&self, response: Response) -> Result<Bytes, EngineError> {
        self.whole(response, ANSWER).await
    }

    /// The body of a response that describes a model.
    pub(crate) async fn description(&self, response: Response) -> Result<Bytes, EngineError> {
        self.whole(response, LIST).await
    }

    async fn whole(&self, response: Response, most: EngineBodyLimit) -> Result<Bytes, EngineError> {
        let too_long = || self.malformed(format!("the response is longer than {} MiB", most.bytes >> 20));
        let body = self.read(response, most.bytes).await?.ok_or_else(too_long)?;
        // A body has at most as many values as bytes.
        if body.len() > most.values && json_values(&body, most.values) > most.values {
            let reason = format!("the response has more than {} JSON values", thousands(most.values));
            return Err(self.malformed(reason));
        }
        Ok(body)
    }

    /// Gets a path and reads its body: a list of models, or the description of one.
    pub(crate) async fn fetch<T>(
        &self,
        path: &str,
        read: impl FnOnce(&[u8]) -> Result<T, String>,
    ) -> Result<T, EngineError> {
        let response = self.accept(self.get(path).await?).await?;
        let body = self.whole(response, LIST).await?;
        read(&body).map_err(|reason| self.malformed(reason))
    }

    /// Returns a response with a success status, and turns every other into an error with the engine's message.
    pub async fn accept(&self, response: Response) -> Result<Response, EngineError> {
        if response.status.is_success() {
            return Ok(response);
        }
        let (status, retry_after) = (response.status, response.retry_after);
        // An error whose body cannot be read is still an error.
        let body = self.read(response, MAX_ERROR_BYTES).await.ok().flatten().unwrap_or_default();
        Err(self.refusal(status, &body, retry_after))
    }

    /// The error for this status and body.
    pub fn refusal(&self, status: StatusCode, body: &[u8], retry_after: Option<u64>) -> EngineError {
        let error_body = EngineErrorBody::read(body);
        EngineError::Refused {
            engine: self.engine.clone(),
            status: status.as_u16(),
            message: error_body
                .message
                .unwrap_or_else(|| status.canonical_reason().unwrap_or("an error").to_owned()),
            code: error_body.code,
            param: error_body.param,
            retry_after: retry_after.or(error_body.retry_after),
        }
    }

    /// The error for a failed transport.
    pub fn failure(&self, broken: TransportError) -> EngineError {
        match broken {
            TransportError::TimedOut => {
                EngineError::Timeout { engine: self.engine.clone(), after: self.timeout }
            }
            TransportError::NotSent(reason) => {
                EngineError::Unreachable { engine: self.engine.clone(), address: self.host.clone(), reason }
            }
            TransportError::MaybeSent(reason) => self.interrupted(reason),
        }
    }

    pub fn malformed(&self, reason: impl Into<String>) -> EngineError {
        EngineError::Malformed { engine: self.engine.clone(), reason: reason.into() }
    }

    pub fn interrupted(&self, reason: impl Into<String>) -> EngineError {
        EngineError::Interrupted { engine: self.engine.clone(), reason: reason.into() }
    }

    pub fn unsupported(&self, field: impl Into<String>, hint: Option<&str>) -> EngineError {
        EngineError::Unsupported {
            engine: self.engine.clone(),
            field: field.into(),
            hint: hint.map(str::to_owned),
        }
    }

    /// The body, or `None` when it is longer than `limit`.
    async fn read(&self, mut response: Response, limit: usize) -> Result<Option<Bytes>, EngineError> {
        let mut next = async || response.chunk().await.transpose().map_err(|broken| self.failure(broken));
        // Most bodies arrive in one piece, which needs no copy.
        let Some(first) = next().await? else { return Ok(Some(Bytes::new())) };
        let Some(second) = next().await? else { return Ok((first.len() <= limit).then_some(first)) };
        let mut body = BytesMut::from(first);
        body.extend_from_slice(&second);
        while body.len() <= limit {
            match next().await? {
                Some(piece) => body.extend_from_slice(&piece),
                None => return Ok(Some(body.freeze())),
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;

//! One engine's HTTP endpoint: the way there, its time-outs, its key, and what its failures mean.

use std::error::Error;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hob_core::EngineError;
use hob_net::{
    DEFAULT_CONNECT_TIMEOUT, HttpClientOptions, ProxyUse, http_client, is_loopback, trace_context,
};
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use tokio::time::Instant;
use url::Url;

use super::direct::{Direct, DirectOptions};
use super::response::{Broken, Response};

/// A health probe that takes longer than this has failed.
pub const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// llama.cpp and uvicorn close a connection that idled for five seconds; letting go of it first avoids writing into one
/// that is just being closed.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(4);

/// A connection to another machine that ends this soon after a request, without a byte of an answer, was most likely closed while
/// it was idle: its end and our request crossed on the way. An engine that reads a request answers it or works on it.
/// Where asking twice costs only time, the request is sent again then, as browsers and nginx do.
const CLOSED_WHILE_IDLE: Duration = Duration::from_secs(2);

/// The longest answer read in one piece. Streams have no limit but that of a single frame.
const MAX_ANSWER_BYTES: usize = 64 << 20;

/// As much of an error's body as is worth reading.
const MAX_ERROR_BYTES: usize = 64 << 10;

/// A header that carries an engine's key, such as `authorization: Bearer …`.
#[derive(Debug, Clone)]
pub struct KeyHeader {
    pub name: HeaderName,
    /// What stands before the key, such as `Bearer `.
    pub prefix: &'static str,
    pub key: SecretString,
}

impl KeyHeader {
    /// `authorization: Bearer KEY`.
    pub fn bearer(key: SecretString) -> Self {
        KeyHeader { name: reqwest::header::AUTHORIZATION, prefix: "Bearer ", key }
    }
}

/// Whether a question whose answer was lost may be asked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resend {
    /// It costs time and nothing else, as on a server of one's own.
    Unanswered,
    /// Somebody may have been paid for it already, as behind a proxy to the cloud.
    Never,
}

/// What an endpoint needs to know.
#[derive(Debug, Clone)]
pub struct EndpointOptions {
    /// The engine's key, for errors.
    pub engine: String,
    /// Base URL without a trailing slash.
    pub host: String,
    /// The longest wait for a connection's next bytes, the answer's head included.
    pub timeout: Duration,
    pub key: Option<KeyHeader>,
    /// Headers sent with every request.
    pub headers: HeaderMap,
    pub resend: Resend,
}

impl EndpointOptions {
    pub fn new(engine: impl Into<String>, host: impl Into<String>) -> Self {
        EndpointOptions {
            engine: engine.into(),
            host: host.into(),
            timeout: Duration::from_secs(120),
            key: None,
            headers: HeaderMap::new(),
            resend: Resend::Unanswered,
        }
    }
}

/// Where an engine listens, and the way there.
#[derive(Debug, Clone)]
pub struct Endpoint {
    engine: String,
    host: String,
    timeout: Duration,
    way: Way,
}

/// How requests travel.
#[derive(Debug, Clone)]
enum Way {
    /// On this machine and unencrypted, as most engines are.
    Direct(Direct),
    Client(Remote),
}

/// An engine on another machine.
#[derive(Debug, Clone)]
struct Remote {
    options: RemoteOptions,
    client: reqwest::Client,
    /// Keeps no connections, so that a request goes out on a new one. Made when it is first needed: certificates take time.
    unpooled: Arc<OnceLock<reqwest::Client>>,
}

#[derive(Debug, Clone)]
struct RemoteOptions {
    headers: HeaderMap,
    connect_timeout: Duration,
    read_timeout: Duration,
    proxy: ProxyUse,
    resend: Resend,
}

impl RemoteOptions {
    fn client(&self, most_idle: usize) -> reqwest::Result<reqwest::Client> {
        http_client(HttpClientOptions {
            headers: self.headers.clone(),
            proxy: self.proxy,
            connect_timeout: self.connect_timeout,
            read_timeout: Some(self.read_timeout),
            pool_idle_timeout: POOL_IDLE_TIMEOUT,
            max_idle_per_host: most_idle,
            ..HttpClientOptions::default()
        })
    }
}

impl Remote {
    fn new(options: RemoteOptions) -> reqwest::Result<Self> {
        Ok(Remote { client: options.client(usize::MAX)?, options, unpooled: Arc::default() })
    }

    fn unpooled(&self) -> reqwest::Result<&reqwest::Client> {
        match self.unpooled.get() {
            Some(client) => Ok(client),
            None => {
                let client = self.options.client(0)?;
                Ok(self.unpooled.get_or_init(|| client))
            }
        }
    }

    /// Sends a request, and once more if it met the end of a kept connection. The client does not say whether it used a kept
    /// one, and mends what it notices before the request goes out.
    async fn send(&self, request: reqwest::Request) -> Result<Response, Broken> {
        let again = request.try_clone();
        let asked = Instant::now();
        let error = match self.client.execute(request).await {
            Ok(response) => return Ok(response.into()),
            Err(error) => error,
        };
        // A connection that was closed before turns a request away at once. One that breaks later has been at work on it.
        let at_once = asked.elapsed() < CLOSED_WHILE_IDLE;
        let met_the_end = at_once
            && match Unanswered::of(&error) {
                Some(Unanswered::Reset) => true,
                Some(Unanswered::Ended) => self.options.resend == Resend::Unanswered,
                None => false,
            };
        match again {
            Some(again) if met_the_end => match self.unpooled()?.execute(again).await {
                // Whoever would ask elsewhere has to know that the question may have gone out.
                Err(second) if second.is_connect() => Err(error.into()),
                other => other.map(Response::from).map_err(Broken::from),
            },
            _ => Err(error.into()),
        }
    }
}

/// How a connection ended before the head of an answer came.
enum Unanswered {
    /// The engine's machine turned the request away, as it does once the connection is closed.
    Reset,
    /// Somebody closed it, who may have read the request.
    Ended,
}

impl Unanswered {
    fn of(error: &reqwest::Error) -> Option<Self> {
        let is_reset = |error: &io::Error| {
            matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe)
        };
        let mut cause: Option<&dyn Error> = Some(error);
        while let Some(error) = cause {
            if error.downcast_ref::<io::Error>().is_some_and(is_reset) {
                return Some(Unanswered::Reset);
            }
            if error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_incomplete_message) {
                return Some(Unanswered::Ended);
            }
            cause = error.source();
        }
        None
    }
}

impl Endpoint {
    pub fn new(options: EndpointOptions) -> Result<Self, EngineError> {
        let not_configured =
            |reason: String| EngineError::NotConfigured { engine: options.engine.clone(), reason };
        let host = options.host.trim_end_matches('/').to_owned();
        let url =
            Url::parse(&host).map_err(|error| not_configured(format!("'{host}' is no URL ({error})")))?;

        let mut headers = options.headers.clone();
        if let Some(KeyHeader { name, prefix, key }) = &options.key {
            let mut value = HeaderValue::try_from(format!("{prefix}{}", key.expose_secret()))
                .map_err(|_| not_configured("its key has characters that no HTTP header can carry".into()))?;
            value.set_sensitive(true);
            headers.insert(name.clone(), value);
        }
        let connect_timeout = DEFAULT_CONNECT_TIMEOUT.min(options.timeout);
        let local = is_loopback(&url).then(|| {
            let options = DirectOptions {
                headers: headers.clone(),
                connect_timeout,
                read_timeout: options.timeout,
                idle_timeout: POOL_IDLE_TIMEOUT,
            };
            Direct::new(&url, options)
        });
        let way = match local.flatten() {
            Some(direct) => Way::Direct(direct),
            None => {
                let options = RemoteOptions {
                    headers,
                    connect_timeout,
                    read_timeout: options.timeout,
                    proxy: ProxyUse::towards(&url),
                    resend: options.resend,
                };
                Way::Client(Remote::new(options).map_err(|error| not_configured(error.to_string()))?)
            }
        };
        Ok(Endpoint { engine: options.engine, host, timeout: options.timeout, way })
    }

    pub fn engine(&self) -> &str {
        &self.engine
    }

    pub fn host(&self) -> &str {
        &self.host
    }

    /// Sends JSON that is already text. The answer's status is not looked at.
    pub async fn post(&self, path: &str, json: Vec<u8>) -> Result<Response, EngineError> {
        let sent = match &self.way {
            Way::Direct(direct) => direct.post(path, json).await,
            Way::Client(remote) => {
                let mut request = remote
                    .client
                    .post(format!("{}{path}", self.host))
                    .header(reqwest::header::CONTENT_TYPE, HeaderValue::from_static("application/json"))
                    .body(json);
                if let Some(parent) = trace_context::header() {
                    request = request.header(trace_context::TRACEPARENT, parent);
                }
                match request.build() {
                    Ok(request) => remote.send(request).await,
                    Err(error) => Err(error.into()),
                }
            }
        };
        sent.map_err(|broken| self.failure(broken))
    }

    pub async fn get(&self, path: &str) -> Result<Response, EngineError> {
        let sent = match &self.way {
            Way::Direct(direct) => direct.get(path).await,
            Way::Client(remote) => match remote.client.get(format!("{}{path}", self.host)).build() {
                Ok(request) => remote.send(request).await,
                Err(error) => Err(error.into()),
            },
        };
        sent.map_err(|broken| self.failure(broken))
    }

    /// Whether `path` answers 2xx in time.
    pub async fn probe(&self, path: &str) -> bool {
        let answered = tokio::time::timeout(PROBE_TIMEOUT, self.get(path)).await;
        matches!(answered, Ok(Ok(response)) if response.status.is_success())
    }

    /// The whole body of an answer.
    pub async fn body(&self, response: Response) -> Result<Bytes, EngineError> {
        self.read(response, MAX_ANSWER_BYTES).await?.ok_or_else(|| EngineError::Malformed {
            engine: self.engine.clone(),
            reason: format!("it is longer than {} MiB", MAX_ANSWER_BYTES >> 20),
        })
    }

    /// Passes a good answer on and turns any other into the engine's own complaint.
    pub async fn accept(&self, response: Response) -> Result<Response, EngineError> {
        if response.status.is_success() {
            return Ok(response);
        }
        let (status, retry_after) = (response.status, response.retry_after);
        // A complaint whose text cannot be read is still a complaint.
        let body = self.read(response, MAX_ERROR_BYTES).await.ok().flatten().unwrap_or_default();
        Err(self.refusal(status, &body, retry_after))
    }

    /// What an error with this status and body means.
    pub fn refusal(&self, status: StatusCode, body: &[u8], retry_after: Option<u64>) -> EngineError {
        let complaint = Complaint::read(body);
        EngineError::Refused {
            engine: self.engine.clone(),
            status: status.as_u16(),
            message: complaint
                .message
                .unwrap_or_else(|| status.canonical_reason().unwrap_or("an error").to_owned()),
            code: complaint.code,
            param: complaint.param,
            retry_after: retry_after.or(complaint.retry_after),
        }
    }

    /// What a failure of the transport means.
    pub fn failure(&self, broken: Broken) -> EngineError {
        match broken {
            Broken::TimedOut => EngineError::Timeout { engine: self.engine.clone(), after: self.timeout },
            Broken::NeverSent(reason) => {
                EngineError::Unreachable { engine: self.engine.clone(), address: self.host.clone(), reason }
            }
            Broken::Lost(reason) => self.interrupted(reason),
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
        // Most bodies come in one piece, which needs no copy.
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

/// What an error body says, in any of the shapes that engines use.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Complaint {
    pub message: Option<String>,
    /// The engine's own word for the error, where it has one that says more than the status.
    pub code: Option<String>,
    pub param: Option<String>,
    /// A status inside the body, as errors in the middle of a stream have it.
    pub status: Option<u16>,
    /// Seconds to wait, as Google tells them in the body.
    pub retry_after: Option<u64>,
}

impl Complaint {
    /// Reads `{"error": {…}}`, `{"error": "…"}`, `{"message": "…"}`, `{"detail": "…"}`, and plain text.
    pub fn read(body: &[u8]) -> Self {
        match serde_json::from_slice(body) {
            Ok(value) => Self::of(&value),
            Err(_) => {
                let text = String::from_utf8_lossy(body);
                let text = text.trim();
                // A page of HTML from some proxy tells nobody anything.
                let message =
                    (!text.is_empty() && !text.starts_with('<')).then(|| text.chars().take(500).collect());
                Complaint { message, ..Complaint::default() }
            }
        }
    }

    pub fn of(value: &serde_json::Value) -> Self {
        // Google puts an error into a list when a list of chunks was asked for.
        let value = value.get(0).unwrap_or(value);
        let error = value.get("error").unwrap_or(value);
        let text = |key: &str| error.get(key).and_then(|value| value.as_str()).map(str::to_owned);
        let message = error.as_str().map(str::to_owned).or_else(|| text("message")).or_else(|| {
            match error.get("detail") {
                Some(serde_json::Value::String(detail)) => Some(detail.clone()),
                Some(detail) => Some(detail.to_string()),
                None => None,
            }
        });
        let status = ["code", "status"].iter().find_map(|key| {
            let code = error.get(key)?;
            let number = code.as_u64().or_else(|| code.as_str()?.parse().ok())?;
            u16::try_from(number).ok().filter(|status| (400..600).contains(status))
        });
        Complaint {
            message,
            code: code(error),
            param: text("param"),
            status,
            retry_after: retry_delay(error),
        }
    }

    /// An error that came under a good status. `None` when `body` is something else.
    pub fn under_good_status(body: &[u8]) -> Option<Self> {
        let value: serde_json::Value = serde_json::from_slice(body).ok()?;
        let object = value.get(0).unwrap_or(&value);
        let has_error = object.get("error").is_some_and(|error| !error.is_null());
        // SGLang puts the error's fields at the top.
        let is_error = object.get("object").and_then(|kind| kind.as_str()) == Some("error");
        (has_error || is_error).then(|| Self::of(&value))
    }
}

/// The engine's word for an error: `code` where it is a word (many put the status there), else the kind of error as Anthropic
/// and llama.cpp (`type`) and Google (`status`) name it. Kinds that only repeat the status are no code.
fn code(error: &serde_json::Value) -> Option<String> {
    ["code", "type", "status"].iter().find_map(|key| telling_code(error.get(key)?.as_str()?))
}

/// A word that says more than the status does.
pub(crate) fn telling_code(word: &str) -> Option<String> {
    const REPEAT_THE_STATUS: [&str; 9] = [
        "error",
        "invalid_request_error",
        "BadRequestError",
        "Bad Request",
        "INVALID_ARGUMENT",
        "rate_limit_error",
        "RESOURCE_EXHAUSTED",
        "server_error",
        "InternalServerError",
    ];
    const MAX_CODE_BYTES: usize = 100;
    let is_word = !word.is_empty() && word.len() <= MAX_CODE_BYTES && word.parse::<u64>().is_err();
    (is_word && !REPEAT_THE_STATUS.contains(&word)).then(|| word.to_owned())
}

/// Seconds to wait, from `{"details": [{"retryDelay": "39.5s"}]}`.
fn retry_delay(error: &serde_json::Value) -> Option<u64> {
    let details = error.get("details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    let seconds: f64 = delay.strip_suffix('s')?.parse().ok()?;
    // Rounded up: a moment too early is refused again.
    (seconds >= 0.0).then(|| seconds.ceil() as u64)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn complaints_are_read_in_every_shape_engines_use() {
        let read = |body: &str| Complaint::read(body.as_bytes());
        assert_eq!(
            read(r#"{"error":{"code":400,"message":"too long","type":"x","param":"messages"}}"#),
            Complaint {
                message: Some("too long".into()),
                code: Some("x".into()),
                param: Some("messages".into()),
                status: Some(400),
                retry_after: None,
            }
        );
        assert_eq!(
            read(
                r#"[{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED","details":[
                    {"@type":"type.googleapis.com/google.rpc.Help"},
                    {"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"38.2s"}]}}]"#
            ),
            Complaint {
                message: Some("slow down".into()),
                code: None,
                param: None,
                status: Some(429),
                retry_after: Some(39),
            }
        );
        assert_eq!(
            read(r#"{"error":"model \"x\" not found"}"#).message.as_deref(),
            Some("model \"x\" not found")
        );
        assert_eq!(read(r#"{"object":"error","message":"no","code":400}"#).message.as_deref(), Some("no"));
        assert_eq!(read(r#"{"detail":"Not Found"}"#).message.as_deref(), Some("Not Found"));
        assert_eq!(read("Bad Gateway\n").message.as_deref(), Some("Bad Gateway"));
        assert_eq!(read("<html>oops</html>"), Complaint::default());
        assert_eq!(read(""), Complaint::default());
    }

    #[test]
    fn an_engines_own_code_is_found_and_a_status_is_none() {
        for (body, code) in [
            (
                r#"{"error":{"type":"invalid_request_error","code":"context_length_exceeded"}}"#,
                Some("context_length_exceeded"),
            ),
            (
                r#"{"error":{"type":"exceed_context_size_error","code":400}}"#,
                Some("exceed_context_size_error"),
            ),
            (
                r#"{"type":"error","error":{"type":"overloaded_error","message":"x"}}"#,
                Some("overloaded_error"),
            ),
            (r#"{"error":{"code":503,"status":"UNAVAILABLE"}}"#, Some("UNAVAILABLE")),
            (r#"{"error":{"type":"BadRequestError","code":400}}"#, None),
            (r#"{"error":{"type":"","code":"429"}}"#, None),
            (r#"{"error":"no"}"#, None),
        ] {
            assert_eq!(Complaint::read(body.as_bytes()).code.as_deref(), code, "{body}");
        }
        let endless = format!(r#"{{"error":{{"code":"{}"}}}}"#, "x".repeat(1000));
        assert_eq!(Complaint::read(endless.as_bytes()).code, None);
    }

    #[test]
    fn an_endpoint_never_shows_its_key() {
        let key = KeyHeader::bearer("s3cret".to_owned().into());
        let options =
            EndpointOptions { key: Some(key), ..EndpointOptions::new("vllm", "http://localhost:1") };
        assert!(!format!("{options:?}").contains("s3cret"));
        let endpoint = Endpoint::new(options).unwrap();
        assert!(!format!("{endpoint:?}").contains("s3cret"));
    }

    /// An engine that answers the first request of each connection, and ends the connection when the next one comes.
    async fn ending_peer(ending: Unanswered) -> (std::net::SocketAddr, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                counter.fetch_add(1, Ordering::Relaxed);
                let mut request = [0; 4096];
                assert!(socket.read(&mut request).await.unwrap() > 0);
                socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
                let _ = match ending {
                    // With the next request unread.
                    Unanswered::Reset => socket.peek(&mut request).await,
                    Unanswered::Ended => socket.read(&mut request).await,
                };
            }
        });
        (address, connections)
    }

    /// An endpoint as for an engine on another machine.
    fn remote(address: std::net::SocketAddr, resend: Resend) -> Endpoint {
        let options = EndpointOptions::new("vllm", format!("http://{address}"));
        let remote = RemoteOptions {
            headers: HeaderMap::new(),
            connect_timeout: DEFAULT_CONNECT_TIMEOUT,
            read_timeout: options.timeout,
            proxy: ProxyUse::Never,
            resend,
        };
        Endpoint { way: Way::Client(Remote::new(remote).unwrap()), ..Endpoint::new(options).unwrap() }
    }

    async fn ask(endpoint: &Endpoint) -> Result<Bytes, EngineError> {
        endpoint.body(endpoint.post("/", b"{}".to_vec()).await?).await
    }

    #[tokio::test]
    async fn a_request_that_met_the_end_of_a_kept_connection_is_sent_on_a_new_one() {
        for (ending, resend) in [(Unanswered::Reset, Resend::Never), (Unanswered::Ended, Resend::Unanswered)]
        {
            let (address, connections) = ending_peer(ending).await;
            let endpoint = remote(address, resend);
            for asked in 1..=50 {
                assert_eq!(
                    ask(&endpoint).await.map_err(|error| error.to_string()),
                    Ok(Bytes::from("ok")),
                    "{asked}"
                );
            }
            assert!(connections.load(Ordering::Relaxed) >= 50);
        }
    }

    #[tokio::test]
    async fn a_request_that_may_have_been_paid_for_is_not_sent_again() {
        let (address, connections) = ending_peer(Unanswered::Ended).await;
        let endpoint = remote(address, Resend::Never);
        assert!(ask(&endpoint).await.is_ok());
        assert!(matches!(ask(&endpoint).await, Err(EngineError::Interrupted { .. })));
        assert_eq!(connections.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_host_that_is_no_url_is_named() {
        let error = Endpoint::new(EndpointOptions::new("vllm", "::nonsense")).unwrap_err();
        assert!(error.to_string().contains("'::nonsense' is no URL"), "{error}");
    }
}

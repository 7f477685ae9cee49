//! A server on a real socket, in front of a test's engine.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hob_agents::ToolSet;
use hob_app::{AskService, AskServiceParts};
use hob_config::ServerConfig;
use hob_core::{Engine, EventBus};
use hob_engines::{Endpoint, EndpointOptions, OpenAiCompat, Style};
use hob_net::install_crypto;
use hob_server::{Server, ServerParts, Stopped};
use hob_telemetry::NoInferenceLog;
use hob_testkit::{FakeServer, Reply};
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The running server.
pub struct TestServer {
    pub address: SocketAddr,
    pub client: reqwest::Client,
    pub shutdown: CancellationToken,
    serving: JoinHandle<Stopped>,
}

impl TestServer {
    /// Starts on a free port of this machine.
    pub async fn start(engine: Arc<dyn Engine>) -> Self {
        Self::start_with(engine, ServerConfig::default()).await
    }

    /// The same with other settings; `host` and `port` are overwritten.
    pub async fn start_with(engine: Arc<dyn Engine>, config: ServerConfig) -> Self {
        Self::start_system(plain_parts(engine), ServerConfig { host: "127.0.0.1".into(), port: 0, ..config })
            .await
    }

    /// The same with this service, on exactly the address of `config`.
    pub async fn start_system(parts: AskServiceParts, config: ServerConfig) -> Self {
        Self::start_parts(Arc::new(AskService::new(parts)), config).await
    }

    /// The same with all services of a server.
    pub async fn start_parts(parts: impl Into<ServerParts>, config: ServerConfig) -> Self {
        let server = Server::bind(parts, &config).await.unwrap();
        let address = server.address();
        let shutdown = CancellationToken::new();
        let serving = tokio::spawn(server.run(shutdown.clone()));
        TestServer { address, client: client(), shutdown, serving }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Posts a chat request.
    pub async fn chat(&self, body: &Value) -> reqwest::Response {
        self.client.post(self.url("/v1/chat/completions")).json(body).send().await.unwrap()
    }

    /// Stops, and returns how many connections had to be closed early.
    pub async fn stop(self) -> usize {
        self.shutdown.cancel();
        self.serving.await.unwrap().cut
    }
}

/// Without the system's certificates, which take longer to read than most tests run.
fn client() -> reqwest::Client {
    install_crypto();
    reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap()
}

/// A service without an agent, tools and telemetry.
pub fn plain_parts(engine: Arc<dyn Engine>) -> AskServiceParts {
    AskServiceParts {
        engine,
        default_model: None,
        agent: None,
        tools: ToolSet::default(),
        max_turns: 10,
        bus: EventBus::new(),
        log: Arc::new(NoInferenceLog),
    }
}

/// Far longer than anything here takes: a test that waits this long has failed.
pub const WAIT_LIMIT: Duration = Duration::from_secs(60);

/// The answer of an OpenAI-compatible engine to `GET /v1/models`.
pub fn models() -> Reply {
    Reply::json(200, r#"{"object":"list","data":[{"id":"m"}]}"#)
}

/// The end of a stream of such an engine.
pub const FINISH: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// An engine of the kind `style` that connects to `fake`.
pub fn engine_at(fake: &FakeServer, style: Style) -> Arc<dyn Engine> {
    engine_with(EndpointOptions::new(style.key, fake.url()), style)
}

pub fn engine_with(options: EndpointOptions, style: Style) -> Arc<dyn Engine> {
    Arc::new(OpenAiCompat::new(style, Endpoint::new(options).unwrap()))
}

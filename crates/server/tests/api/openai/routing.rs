//! `model: "auto"`, and why a model answers.

use std::sync::Arc;

use hob_app::startup::routing::open_routing_service;
use hob_app::{AskService, AskServiceParts, hob_database};
use hob_config::ServerConfig;
use hob_core::Engine;
use hob_routing::{PolicyName, Router};
use hob_telemetry::TelemetryService;
use hob_testkit::ScriptedEngine;
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fixtures::{loopback_config, parts};
use crate::support::TestServer;

const REASON: &str = "x-hob-model-reason";

pub struct RoutingServer {
    _home: TempDir,
    pub http: TestServer,
}

impl RoutingServer {
    pub async fn open(config: ServerConfig) -> Self {
        Self::open_with(config, None).await
    }

    /// The same with a default model.
    async fn open_with(config: ServerConfig, default_model: Option<&str>) -> Self {
        let home = tempfile::tempdir().unwrap();
        let engine = ScriptedEngine::saying(&["Hel", "lo"])
            .with_models(&["large:70b", "small:1b"])
            .with_embedding_models(&["vectors:1m"]);
        let default_model = default_model.map(str::to_owned);
        let system =
            AskService::new(AskServiceParts { default_model, ..parts(Arc::new(engine) as Arc<dyn Engine>) });
        let service = open_routing_service(hob_database(home.path()), TelemetryService::default());
        let system = Arc::new(system.with_router(Router::new(PolicyName::Heuristic, service)));
        RoutingServer { _home: home, http: TestServer::start_parts(system, config).await }
    }

    pub async fn ask(&self, body: Value) -> Response {
        self.http.chat(&body).await
    }

    async fn get(&self, path: &str) -> Response {
        self.http.client.get(self.http.url(path)).send().await.unwrap()
    }

    pub async fn rate(&self, body: &Value) -> (StatusCode, Value) {
        let url = self.http.url("/v1/feedback");
        let response = self.http.client.post(url).json(body).send().await.unwrap();
        (response.status(), response.json().await.unwrap())
    }
}

pub fn question(model: &str, text: &str, stream: bool) -> Value {
    json!({ "model": model, "messages": [{ "role": "user", "content": text }], "stream": stream })
}

#[tokio::test]
async fn complete_answers_and_streams_name_the_model_and_the_reason() {
    let server = RoutingServer::open(loopback_config()).await;
    let whole = server.ask(question("auto", "Hello", false)).await;
    let why = "heuristic: the question is short and simple, so the smallest of 2 models";
    assert_eq!((whole.status(), whole.headers()[REASON].to_str().unwrap()), (StatusCode::OK, why));
    assert_eq!(whole.json::<Value>().await.unwrap()["model"], "small:1b");

    let stream = server.ask(question("auto", "What is 17 * 23?", true)).await;
    let why = "heuristic: it is about mathematics, so the largest of 2 models";
    assert_eq!((stream.status(), stream.headers()[REASON].to_str().unwrap()), (StatusCode::OK, why));
    let body = stream.text().await.unwrap();
    assert!(body.contains(r#""model":"large:70b""#) && body.ends_with("data: [DONE]\n\n"), "{body}");
}

#[tokio::test]
async fn a_named_model_answers_without_a_reason_header() {
    let server = RoutingServer::open(loopback_config()).await;
    for stream in [false, true] {
        let answer = server.ask(question("large:70b", "Hello", stream)).await;
        assert_eq!(answer.headers().get(REASON), None);
        assert!(answer.text().await.unwrap().contains("large:70b"));
    }
}

#[tokio::test]
async fn without_a_suitable_model_auto_is_an_error() {
    let engine = ScriptedEngine::saying(&[]).with_models(&["nomic-embed-text"]);
    let server = TestServer::start(Arc::new(engine)).await;
    let refused = server.chat(&question("auto", "Hello", false)).await;
    assert_eq!(refused.status(), StatusCode::NOT_FOUND);
    let body: Value = refused.json().await.unwrap();
    assert_eq!(
        (&body["error"]["code"], &body["error"]["param"]),
        (&json!("model_not_found"), &json!("model"))
    );
    assert!(body["detail"].as_str().unwrap().starts_with("'auto' leaves the choice"), "{body}");
}

#[tokio::test]
async fn auto_is_listed_if_it_is_the_default() {
    let server = RoutingServer::open_with(loopback_config(), Some("auto")).await;
    let models = server.get("/v1/models").await.json::<Value>().await.unwrap();
    let auto = json!({ "id": "auto", "object": "model", "created": 0, "owned_by": "hob", "default": true });
    assert!(models["data"].as_array().unwrap().contains(&auto), "{models}");
    assert_eq!(server.get("/v1/models/auto").await.json::<Value>().await.unwrap(), auto);
    let answer = server.ask(question("auto", "Hello", false)).await;
    assert_eq!(answer.json::<Value>().await.unwrap()["model"], "small:1b");
}

#[tokio::test]
async fn the_names_of_hob_come_after_the_models_of_the_engine() {
    let server = RoutingServer::open(loopback_config()).await;
    let models = server.get("/v1/models").await.json::<Value>().await.unwrap();
    let ids: Vec<&Value> = models["data"].as_array().unwrap().iter().map(|model| &model["id"]).collect();
    assert_eq!(ids, ["vectors:1m", "large:70b", "small:1b", "default", "auto", "hob/agent"]);
    let auto = json!({ "id": "auto", "object": "model", "created": 0, "owned_by": "hob" });
    assert_eq!(server.get("/v1/models/auto").await.json::<Value>().await.unwrap(), auto);
}

#[tokio::test]
async fn an_engines_own_model_named_auto_is_listed_as_such() {
    let engine = ScriptedEngine::saying(&["hi"]).with_models(&["auto", "small:1b"]);
    let parts = AskServiceParts { default_model: Some("auto".to_owned()), ..parts(Arc::new(engine)) };
    let server = TestServer::start_system(parts, loopback_config()).await;
    let models: Value =
        server.client.get(server.url("/v1/models")).send().await.unwrap().json().await.unwrap();
    let owners: Vec<(&Value, &Value)> =
        models["data"].as_array().unwrap().iter().map(|model| (&model["id"], &model["owned_by"])).collect();
    let (scripted, hob) = (json!("scripted"), json!("hob"));
    let expected = [("auto", &scripted), ("small:1b", &scripted), ("default", &hob), ("hob/agent", &hob)];
    assert_eq!(
        owners,
        expected
            .map(|(id, owner)| (json!(id), owner))
            .iter()
            .map(|(id, owner)| (id, *owner))
            .collect::<Vec<_>>()
    );
}
